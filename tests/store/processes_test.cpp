// Eight processes use the same folder at the same time.
#include <signal.h>

#include "child_process.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::processes_test {
namespace {

constexpr int k_processes = 8;

class Processes : public StoreTest {
protected:
    /// Runs `body(process number)` in 8 processes that start together. The result is the exit status of the process;
    /// all must be 0.
    template <class Body>
    static void in_processes(Body body)
    {
        const Gate gate;
        std::vector<ChildProcess> children;
        for (int p = 0; p < k_processes; ++p) {
            children.emplace_back([&, p] {
                gate.wait();
                return body(p);
            });
        }
        for (int p = 0; p < k_processes; ++p) gate.open();
        for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
    }
};

TEST_F(Processes, PublishersOfOneKeyNeverShowAPart)
{
    const EntryKey key = make_entry(k_decode).header.key;
    ASSERT_TRUE(succeeded(open()->publish(make_entry(k_decode, 0, "first"))));
    in_processes([&](int p) {
        const auto store = open();
        for (int round = 0; round < 10; ++round) {
            const Entry entry = make_entry(k_decode, 0, std::string(static_cast<std::size_t>(100 * p + round), 'm'));
            if (!store->publish(entry)) return 1;
            const auto read = store->entry(key);
            if (!read || !*read) return 2;
        }
        return 0;
    });
    EXPECT_TRUE(quarantined().empty());
    EXPECT_EQ(names_in(folder()).size(), 1U);
    EXPECT_TRUE(open()->check().value().empty());
}

TEST_F(Processes, MakeAndMarkOneFolderTogether)
{
    for (int round = 0; round < 10; ++round) {
        m_root = m_dir.path() / std::to_string(round);
        in_processes([&](int p) {
            const auto store = LocalStore::open(m_root);
            return store && (*store)->publish(make_entry(k_decode, p)) ? 0 : 1;
        });
        EXPECT_TRUE(open()->check().value().empty());
    }
}

TEST_F(Processes, ShareImagesAndNotEntries)
{
    const Bytes image = image_of("device code");
    in_processes([&](int p) {
        const auto store = open();
        const FunctionKey function{k_decode.model_info, fmt::format("world8global_rank{}", p), "decode"};
        if (!store->publish_image(image) || !store->publish(make_entry(function, 0, "", {image}))) return 1;
        return store->image(sha256(image)).value() == image ? 0 : 2;
    });
    EXPECT_EQ(open()->images().value().size(), 1U);
    EXPECT_EQ(open()->functions().value().size(), 8U);
    EXPECT_TRUE(open()->check().value().empty());
}

TEST_F(Processes, OneRecordsAndTheNextMayWhenItIsKilled)
{
    const EntryKey key = make_entry(k_decode).header.key;
    const auto store = open();
    const Gate taken;
    const Gate never;
    ChildProcess leader([&] {
        const auto lock = open()->try_record_lock(key);
        if (!lock || !*lock) return 1;
        taken.open();
        never.wait();
        return 0;
    });
    taken.wait();
    EXPECT_EQ(store->try_record_lock(key).value(), nullptr);
    ASSERT_EQ(::kill(leader.pid(), SIGKILL), 0);
    EXPECT_EQ(leader.wait(), 1000 + SIGKILL);
    EXPECT_NE(store->try_record_lock(key).value(), nullptr);
}

// A small form of promise D2: processes are killed at any moment while they publish, evict and quarantine.
TEST_F(Processes, KilledAtRandomTheyLeaveAUsableCacheAndNothingThatGrows)
{
    constexpr int k_rounds = 30;
    for (int round = 0; round < k_rounds; ++round) {
        const Gate running;
        ChildProcess child([&] {
            const auto store = open({.max_variants = 3});
            for (int i = 0;; ++i) {
                static_cast<void>(store->publish_image(image_of("image " + std::to_string(i % 5))));
                static_cast<void>(store->publish(make_entry(k_decode, i % 7, std::to_string(i))));
                store->add_usage(k_decode, {.hits = 1});
                if (i == round % 4) running.open();
            }
            return 0;
        });
        running.wait();
        ASSERT_EQ(::kill(child.pid(), SIGKILL), 0);
        EXPECT_EQ(child.wait(), 1000 + SIGKILL);
        const auto store = open({.max_variants = 3});
        const auto variants = take(store->variants(k_decode));
        for (const auto& variant : variants) EXPECT_TRUE(succeeded(store->entry({k_decode, variant.guards_digest})));
    }
    const auto store = open({.max_variants = 3});
    EXPECT_TRUE(quarantined().empty());
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode))));
    EXPECT_LE(names_in(folder()).size(), 3U + 2U) << "3 entries, usage and its lock";
    ASSERT_TRUE(succeeded(store->repair()));
    EXPECT_TRUE(store->check().value().empty());
}

} // namespace
} // namespace warmgraph::test::processes_test
