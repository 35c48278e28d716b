// One file operation fails, or this one and all later operations. The caller gets an error, and the cache stays usable
// and clean.
#include "child_process.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::fault_test {
namespace {

using Lasts = FaultyFileSystem::Lasts;
using Leaves = FaultyFileSystem::Leaves;

class Faults : public StoreTest {
protected:
    /// For every N and every kind of failure: runs `prepare` on a new cache, `act` while the Nth operation fails (once,
    /// or with all later operations), and then `verify`. Stops when `act` makes fewer than N operations.
    template <class Prepare, class Act, class Verify>
    void for_every_fault(Prepare prepare, Act act, Verify verify,
                         const std::vector<ErrorCode>& codes = {ErrorCode::no_space, ErrorCode::io_failed,
                                                                ErrorCode::permission_denied})
    {
        for (const Lasts lasts : {Lasts::once, Lasts::for_ever}) {
            for (const ErrorCode code : codes) {
                for (std::uint64_t nth = 1;; ++nth) {
                    SCOPED_TRACE(fmt::format("operation {} fails with {}, {}", nth, to_string(code),
                                             lasts == Lasts::once ? "once" : "for ever"));
                    m_root = m_dir.path() / fmt::format("{}-{}-{}", nth, to_string(code), static_cast<int>(lasts));
                    FaultyFileSystem files;
                    const auto store = open({.max_variants = 2}, files);
                    prepare(*store);
                    files.fail_at(nth, code, lasts);
                    auto result = act(*store);
                    const bool injected = files.injected() > 0;
                    files.stop_failing();
                    if (!result) {
                        EXPECT_EQ(result.error().code, code) << result.error().message;
                    }
                    if (!injected) {
                        EXPECT_TRUE(succeeded(result));
                    }
                    verify(*store, result, injected);
                    if (!injected) {
                        EXPECT_GT(nth, 2U) << "hardly anything was made to fail";
                        break;
                    }
                }
            }
        }
    }
    /// Expects that nothing is damaged or left over. Temporary files of this process count as left over, too.
    void expect_clean()
    {
        EXPECT_TRUE(open()->check().value().empty());
        for (const auto& [path, content] : snapshot(m_root)) {
            if (content != "(folder)") {
                EXPECT_EQ(path.find(".tmp-"), std::string::npos) << path << " is left over";
            }
        }
    }

    Entry m_old = make_entry(k_decode, 0, "old");
    Entry m_new = make_entry(k_decode, 0, "new");
    Bytes m_image = image_of("device code");
};

TEST_F(Faults, PublishGivesTheOldOrTheNewEntry)
{
    for_every_fault([&](LocalStore& store) { ASSERT_TRUE(succeeded(store.publish(m_old))); },
                    [&](LocalStore& store) { return store.publish(m_new); },
                    [&](LocalStore& store, const Result<void>& result, bool) {
                        const auto entry = take(store.entry(m_old.header.key));
                        ASSERT_TRUE(entry);
                        const std::string& mark = entry->header.info.verification;
                        if (result) {
                            EXPECT_EQ(mark, "new");
                        }
                        EXPECT_TRUE(mark == "new" || mark == "old") << mark;
                        ASSERT_TRUE(succeeded(store.publish(m_new))) << "the next try works";
                        EXPECT_EQ((*store.entry(m_old.header.key))->header.info.verification, "new");
                    });
}

TEST_F(Faults, AFullDiskWhilePublishingLeavesNothing)
{
    for (std::uint64_t nth = 1;; ++nth) {
        SCOPED_TRACE(fmt::format("operation {}", nth));
        m_root = m_dir.path() / std::to_string(nth);
        FaultyFileSystem files;
        const auto store = open({}, files);
        files.fail_at(nth, ErrorCode::no_space); // fails once, because on a full disk files can still be removed
        const auto result = store->publish(m_new);
        const bool injected = files.injected() > 0;
        files.stop_failing();
        if (!result) {
            EXPECT_TRUE(failed_with(result, ErrorCode::no_space, "publish decode"));
            EXPECT_FALSE(store->entry(m_new.header.key).value());
        }
        expect_clean();
        if (!injected) break;
        EXPECT_TRUE(succeeded(store->publish(m_new)));
        EXPECT_EQ(store->entry(m_new.header.key).value(), m_new);
    }
}

TEST_F(Faults, ReadingAnEntryGivesItOrAnErrorAndNeverHarmsIt)
{
    for_every_fault([&](LocalStore& store) { ASSERT_TRUE(succeeded(store.publish(m_old))); },
                    [&](LocalStore& store) { return store.entry(m_old.header.key); },
                    [&](LocalStore& store, const Result<std::optional<Entry>>& result, bool) {
                        if (result) {
                            EXPECT_EQ(*result, m_old);
                        }
                        EXPECT_EQ(store.entry(m_old.header.key).value(), m_old);
                        expect_clean();
                    });
}

TEST_F(Faults, ADamagedEntryIsNeverReturnedHoweverTheDiskFails)
{
    FaultyFileSystem files;
    for (const Lasts lasts : {Lasts::once, Lasts::for_ever}) {
        for (std::uint64_t nth = 1;; ++nth) {
            SCOPED_TRACE(fmt::format("operation {}", nth));
            m_root = m_dir.path() / fmt::format("{}-{}", nth, static_cast<int>(lasts));
            const auto store = open({}, files);
            ASSERT_TRUE(succeeded(store->publish(m_old)));
            flip(path_of(m_old.header.key), 200);
            files.fail_at(nth, ErrorCode::io_failed, lasts);
            EXPECT_FALSE(store->entry(m_old.header.key));
            const bool injected = files.injected() > 0;
            files.stop_failing();
            ASSERT_TRUE(succeeded(store->publish(m_new))) << "replaced in the same run";
            EXPECT_EQ(store->entry(m_old.header.key).value(), m_new);
            if (!injected) break;
        }
    }
}

TEST_F(Faults, PublishingAnImageGivesItWholeOrNotAtAll)
{
    for_every_fault([](LocalStore&) {}, [&](LocalStore& store) { return store.publish_image(m_image); },
                    [&](LocalStore& store, const Result<bool>& result, bool) {
                        const auto image = take(store.image(sha256(m_image)));
                        if (result) {
                            ASSERT_TRUE(image);
                        }
                        if (image) {
                            EXPECT_EQ(*image, m_image);
                        }
                        ASSERT_TRUE(succeeded(store.publish_image(m_image)));
                        EXPECT_EQ(store.image(sha256(m_image)).value(), m_image);
                    });
}

TEST_F(Faults, ReadingAnImageGivesItOrAnError)
{
    for_every_fault([&](LocalStore& store) { ASSERT_TRUE(store.publish_image(m_image).value()); },
                    [&](LocalStore& store) {
                        // An image takes one query and one read; with the reading of the header, this is one load.
                        static_cast<void>(store.header(m_old.header.key));
                        return store.image(sha256(m_image));
                    },
                    [&](LocalStore& store, const Result<std::optional<Bytes>>& result, bool) {
                        if (result) {
                            EXPECT_EQ(*result, m_image);
                        }
                        EXPECT_EQ(store.image(sha256(m_image)).value(), m_image);
                        expect_clean();
                    });
}

TEST_F(Faults, EvictionThatFailsIsMadeUpForByTheNextPublish)
{
    for_every_fault(
        [&](LocalStore& store) {
            for (const int variant : {1, 2}) ASSERT_TRUE(succeeded(store.publish(make_entry(k_decode, variant))));
        },
        [&](LocalStore& store) { return store.publish(make_entry(k_decode, 3)); },
        [&](LocalStore& store, const Result<void>&, bool) {
            EXPECT_LE(store.variants(k_decode).value().size(), 3U);
            ASSERT_TRUE(succeeded(store.publish(make_entry(k_decode, 4))));
            EXPECT_EQ(store.variants(k_decode).value().size(), 2U);
            EXPECT_EQ(store.entry(make_entry(k_decode, 4).header.key).value(), make_entry(k_decode, 4));
        });
}

TEST_F(Faults, ClearAndRepairReportAFailureAndCanBeRunAgain)
{
    for_every_fault(
        [&](LocalStore& store) {
            ASSERT_TRUE(store.publish_image(m_image).value());
            ASSERT_TRUE(succeeded(store.publish(make_entry(k_decode, 0, "", {m_image}))));
            ASSERT_TRUE(succeeded(store.publish(make_entry(k_prompt))));
            flip(path_of(m_image), 0);
        },
        [&](LocalStore& store) -> Result<store::Removal> {
            if (auto repaired = store.repair(); !repaired) return std::unexpected(repaired.error());
            return store.clear();
        },
        [&](LocalStore& store, const Result<store::Removal>&, bool) {
            EXPECT_TRUE(succeeded(store.repair()));
            EXPECT_TRUE(succeeded(store.clear()));
            EXPECT_TRUE(store.functions().value().empty());
            EXPECT_TRUE(store.images().value().empty());
            expect_clean();
        },
        {ErrorCode::io_failed});
}

// As if the process was killed before the Nth operation of publish: no later operation happens, and the file that is
// being written is cut in half.
TEST_F(Faults, AProcessThatDiesAnywhereInPublishLeavesAUsableCache)
{
    ASSERT_TRUE(succeeded(open()->publish(m_old)));
    for (std::uint64_t nth = 1;; ++nth) {
        SCOPED_TRACE(fmt::format("dies at operation {}", nth));
        ChildProcess child([&] {
            FaultyFileSystem files;
            const auto store = open({}, files);
            files.fail_at(nth, ErrorCode::io_failed, Lasts::for_ever, Leaves::half_a_file);
            static_cast<void>(store->publish(m_new));
            return files.injected() > 0 ? 0 : 7;
        });
        const int status = child.wait();
        ASSERT_TRUE(status == 0 || status == 7) << status;
        const auto store = open();
        const auto entry = take(store->entry(m_old.header.key));
        ASSERT_TRUE(entry);
        const std::string& mark = entry->header.info.verification;
        EXPECT_TRUE(mark == "old" || mark == "new") << mark;
        ASSERT_TRUE(succeeded(store->publish(m_old)));
        EXPECT_EQ(names_in(folder()).size(), 1U) << "the next writer swept up";
        if (status == 7) {
            EXPECT_EQ(mark, "new");
            break;
        }
    }
}

} // namespace
} // namespace warmgraph::test::fault_test
