// A remote below the folder: what it gives, what it costs, and what it is not trusted with.
#include <random>
#include <thread>

#include "log_lines.hpp"
#include "remote_fixture.hpp"

namespace warmgraph::test::remote_tier_test {
namespace {

class RemoteTierTest : public RemoteTest {};

TEST_F(RemoteTierTest, AHitIsKeptInTheFolderAndServesWithoutTheRemote)
{
    put(m_entry, {m_image});
    {
        const auto remote = connect();
        const auto store = open_with(remote, "a");
        EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
        EXPECT_EQ(store->image(sha256(m_image), m_image.size()).value(), m_image);
        EXPECT_EQ(remote->counts().hits, 2U);
        store->wait_for_copies();
        const auto asked = m_shared->asked.load();
        EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
        EXPECT_EQ(store->image(sha256(m_image), m_image.size()).value(), m_image);
        EXPECT_EQ(m_shared->asked, asked) << "the folder has them";
    }
    const auto alone = take(LocalStore::open(m_root / "a"));
    EXPECT_EQ(alone->entry(m_entry.header.key).value(), m_entry);
    EXPECT_EQ(alone->image(sha256(m_image), m_image.size()).value(), m_image);
}

TEST_F(RemoteTierTest, AFolderThatIsOnlyReadStaysAsItIs)
{
    put(m_entry, {m_image});
    take(LocalStore::open(m_root / "a"));
    const auto store = open_with(connect(), "a", {.access = store::StoreMode::read_only});
    const auto before = snapshot(m_root / "a");
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    EXPECT_EQ(snapshot(m_root / "a"), before);
}

TEST_F(RemoteTierTest, TheHeaderComesFirstAndTheRestOnlyIfItIsAccepted)
{
    Entry large = make_entry(k_decode, 3);
    large.graph.nodes = std::vector<cachefmt::Node>(20'000, cachefmt::FillNode{{}, Bytes(4), 1024});
    std::mt19937 random(1);
    for (cachefmt::Node& node : large.graph.nodes)
        for (std::byte& byte : std::get<cachefmt::FillNode>(node).pattern) byte = std::byte(random());
    large.header.info.node_count = 20'000;
    put(large);
    const std::uint64_t size = (*m_shared->tier.get(large.header.key, {0, false}))->stamp.size;
    ASSERT_GT(size, 100'000U);
    const auto refusing = connect({.trust = trust_of("ours")});
    EXPECT_FALSE(open_with(refusing, "a")->entry(large.header.key).value()) << "it is not signed";
    EXPECT_LT(m_shared->bytes, 40'000U);
    EXPECT_EQ(refusing->counts().errors, (std::map<std::string, std::uint64_t>{{"untrusted", 1}}));
    EXPECT_EQ(refusing->counts().bytes_left, size - refusing->counts().bytes_read);

    m_shared->bytes = 0;
    const auto remote = connect();
    const auto store = open_with(remote, "b");
    ASSERT_TRUE(take(store->header(large.header.key)));
    EXPECT_LT(m_shared->bytes, 40'000U);
    EXPECT_EQ(store->entry(large.header.key).value(), large);
    EXPECT_EQ(m_shared->bytes, size) << "the header is fetched once";
    EXPECT_EQ(remote->counts().bytes_read, size);
    EXPECT_EQ(remote->counts().bytes_left, 0U);
}

TEST_F(RemoteTierTest, AnEntryThatIsReplacedWhileItIsReadIsReadAgain)
{
    Entry old = make_entry(k_decode, 3, std::string(40'000, 'a')),
          now = make_entry(k_decode, 3, std::string(50'000, 'b'));
    store::Store store(m_shared->tier);
    ASSERT_TRUE(succeeded(store.publish(old)));
    std::atomic<int> reads = 0;
    m_shared->lie = [&](store::StampedBytes&) {
        if (reads++ == 0) {
            ASSERT_TRUE(succeeded(store.publish(now)));
        }
    };
    EXPECT_EQ(open_with(connect(), "a")->entry(old.header.key).value(), now);
}

TEST_F(RemoteTierTest, APayloadMayTakeAsLongAsAHitSaves)
{
    using std::chrono::milliseconds;
    Entry large = make_entry(k_decode, 3, std::string(40'000, 'a'), {m_image});
    large.header.info.answer_ms = 250.5;
    put(large, {m_image});
    const auto store = open_with(connect(), "a");
    EXPECT_EQ(store->entry(large.header.key).value(), large);
    EXPECT_EQ(store->image(sha256(m_image)).value(), m_image);
    EXPECT_EQ(m_shared->limits, (std::vector{milliseconds(251), milliseconds(251)}));
}

TEST_F(RemoteTierTest, AnAnswerThatIsTooLateIsAMissAndTheStoreIsAskedForOthers)
{
    Entry large = make_entry(k_decode, 3, std::string(40'000, 'a'), {m_image});
    large.header.info.answer_ms = 0.5;
    put(large, {m_image});
    SetClock clock;
    const auto remote = connect({}, clock);
    const auto store = open_with(remote, "a");
    m_shared->late = [&](std::chrono::milliseconds within) { clock.sleep_for(within); };
    EXPECT_FALSE(store->entry(large.header.key).value());
    EXPECT_EQ(m_shared->limits, (std::vector{std::chrono::milliseconds(1)})) << "half a millisecond is not no limit";
    EXPECT_EQ(remote->counts().why_not_asked, "");
    const auto asked = m_shared->asked.load();
    EXPECT_FALSE(store->entry(large.header.key).value());
    EXPECT_EQ(m_shared->asked, asked) << "it would be as late again";
    EXPECT_TRUE(store->image(sha256(m_image)).value()) << "the store answers in time for another object";
}

TEST_F(RemoteTierTest, ADeadOneIsAskedOnce)
{
    m_shared->fault = Error{ErrorCode::io_failed, "remote test://remote: no connection within 100 ms"};
    const LogLines lines;
    log().set_level(spdlog::level::info);
    const auto remote = connect();
    const auto store = open_with(remote, "a");
    for (int i = 0; i < 1000; ++i) {
        const Entry other = make_entry(k_decode, i);
        EXPECT_FALSE(take(store->header(other.header.key)));
        EXPECT_TRUE(store->variants(k_decode).value().empty());
        EXPECT_FALSE(store->entry(other.header.key).value());
        EXPECT_FALSE(store->image(sha256(m_image)).value());
    }
    EXPECT_EQ(m_shared->asked, 1U);
    EXPECT_EQ(remote->counts().skipped, 3999U);
    EXPECT_EQ(remote->counts().errors, (std::map<std::string, std::uint64_t>{{"io_failed", 1}}));
    EXPECT_EQ(lines.with("it is not asked again for 30 s").size(), 1U);
    log().set_level(spdlog::level::off);
}

TEST_F(RemoteTierTest, OneThatAnswersAgainIsAskedAgain)
{
    put(m_entry, {m_image});
    SetClock clock;
    const auto remote = connect({.pause = std::chrono::milliseconds(1000)}, clock);
    const auto store = open_with(remote, "a");
    m_shared->fault = Error{ErrorCode::io_failed, "down"};
    EXPECT_FALSE(store->entry(m_entry.header.key).value());
    m_shared->fault.reset();
    EXPECT_FALSE(store->entry(m_entry.header.key).value()) << "the pause is not over";
    EXPECT_EQ(remote->counts().why_not_asked, "down");
    clock.since_start += 2'000'000;
    // The call that starts the probe does not wait for it.
    for (int i = 0; i < 1000 && !store->entry(m_entry.header.key).value(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    EXPECT_EQ(remote->counts().why_not_asked, "");
}

TEST_F(RemoteTierTest, AFailedProbeWaitsForAnotherPause)
{
    SetClock clock;
    const auto remote = connect({.pause = std::chrono::milliseconds(1000)}, clock);
    m_shared->fault = Error{ErrorCode::io_failed, "down"};
    EXPECT_FALSE(remote->get(m_entry.header.key, {10, false}).value());
    clock.since_start += 2'000'000;
    EXPECT_FALSE(remote->get(m_entry.header.key, {10, false}).value());
    for (int i = 0; i < 1000 && m_shared->asked < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(remote->get(m_entry.header.key, {10, false}).value());
    EXPECT_EQ(m_shared->asked, 2U);
}

TEST_F(RemoteTierTest, ALyingOneIsAMissThatIsCountedAndNotFetchedAgain)
{
    put(m_entry, {m_image});
    m_shared->lie = [](store::StampedBytes& found) {
        if (found.bytes && found.bytes->size() > 300) (*found.bytes)[300] ^= std::byte{1};
    };
    std::set<std::string> kept;
    const auto note = [&](const std::string& name, bool is_refused) {
        if (is_refused)
            kept.insert(name);
        else
            kept.erase(name);
    };
    const auto remote = connect({.note_refused = note});
    const auto store = open_with(remote, "a");
    EXPECT_FALSE(store->entry(m_entry.header.key).value());
    EXPECT_FALSE(store->image(sha256(m_image)).value());
    EXPECT_EQ(remote->counts().errors, (std::map<std::string, std::uint64_t>{{"corrupt", 2}}));
    EXPECT_EQ(names_in(m_root / "a" / "quarantine").size(), 0U) << "nothing of it touched the folder";
    EXPECT_EQ(kept.size(), 2U);
    m_shared->lie = {};
    const auto asked = m_shared->asked.load();
    EXPECT_FALSE(store->entry(m_entry.header.key).value());
    const auto later = connect({.refused = kept, .note_refused = note});
    EXPECT_FALSE(open_with(later, "a")->entry(m_entry.header.key).value());
    EXPECT_EQ(m_shared->asked, asked) << "this folder has seen it";
    EXPECT_EQ(open_with(connect(), "b")->entry(m_entry.header.key).value(), m_entry) << "other folders decide alone";
    // An object that this folder puts is good again, also for an image, which is otherwise only made.
    ASSERT_TRUE(succeeded(m_shared->tier.put(store::ImageName{sha256(m_image)}, as_bytes("damaged"))));
    ASSERT_TRUE(succeeded(later->put(store::ImageName{sha256(m_image)}, m_image, store::PutMode::create_only)));
    EXPECT_EQ(kept.size(), 1U);
    EXPECT_EQ(open_with(connect(), "c")->image(sha256(m_image)).value(), m_image);
}

TEST_F(RemoteTierTest, SizesAreCappedBeforeMemoryIsTaken)
{
    put(m_entry, {m_image});
    m_shared->lie = [](store::StampedBytes& found) { found.stamp.size = ~0ULL >> 1; };
    const auto remote = connect();
    EXPECT_FALSE(open_with(remote, "a")->entry(m_entry.header.key).value());
    EXPECT_EQ(remote->counts().errors, (std::map<std::string, std::uint64_t>{{"corrupt", 1}}));
    m_shared->lie = {};
    std::set<std::string> refused;
    const auto small =
        connect({.max_bytes = 500, .note_refused = [&](const std::string& name, bool) { refused.insert(name); }});
    const auto reader = open_with(small, "b");
    EXPECT_FALSE(reader->image(sha256(m_image)).value());
    EXPECT_FALSE(reader->entry(m_entry.header.key).value()) << "also if it is read in parts";
    EXPECT_TRUE(refused.empty()) << "a large object is no damaged one";
    EXPECT_TRUE(failed_with(small->put(store::ImageName{sha256(m_image)}, m_image), ErrorCode::unsupported,
                            "takes at most 500 (max-bytes)"));
}

TEST_F(RemoteTierTest, WhatIsNotSignedIsNotUsedUnlessTheUrlSaysSo)
{
    const store::ArtifactName tuned{store::ArtifactKind::tuned, sha256(as_bytes("key"))};
    const auto unsigned_one = connect();
    ASSERT_TRUE(succeeded(unsigned_one->put(tuned, as_bytes("best"))));
    const auto text = [&](RemoteTier& tier) -> std::string {
        const auto found = tier.get(tuned, {100});
        return *found && (*found)->bytes ? std::string(as_text(*(*found)->bytes)) : "none";
    };
    EXPECT_EQ(text(*unsigned_one), "best");
    const auto strict = connect({.trust = trust_of("ours")});
    EXPECT_EQ(text(*strict), "none");
    EXPECT_EQ(strict->counts().errors, (std::map<std::string, std::uint64_t>{{"untrusted", 1}}));
    ASSERT_TRUE(succeeded(strict->put(tuned, as_bytes("signed"))));
    EXPECT_EQ(text(*strict), "signed");
    EXPECT_EQ(text(*connect({.trust = trust_of("theirs")})), "none");
    EXPECT_EQ(text(*connect({.trust = trust_of("theirs", false)})), "signed");
}

TEST_F(RemoteTierTest, AnArtifactIsHeldToItsNameAndItsDigest)
{
    const store::ArtifactName one{store::ArtifactKind::tuned, sha256(as_bytes("1"))},
        other{store::ArtifactKind::tuned, sha256(as_bytes("2"))};
    const auto remote = connect({.trust = trust_of("ours")});
    ASSERT_TRUE(succeeded(remote->put(one, as_bytes("best"))));
    const Bytes sealed = *(*m_shared->tier.get(one, {10'000}))->bytes;
    ASSERT_TRUE(succeeded(m_shared->tier.put(other, sealed)));
    EXPECT_FALSE(remote->get(other, {100}).value()) << "a signed artifact under another name";
    for (std::size_t at = 0; at < sealed.size(); ++at) {
        Bytes damaged = sealed;
        damaged[at] ^= std::byte{1};
        ASSERT_TRUE(succeeded(m_shared->tier.put(one, damaged)));
        EXPECT_FALSE(connect({.trust = trust_of("ours")})->get(one, {100}).value()) << at;
    }
    for (const std::size_t size : {0UL, 1UL, 100UL, sealed.size() - 1}) {
        ASSERT_TRUE(succeeded(m_shared->tier.put(one, ByteView(sealed).first(size))));
        EXPECT_FALSE(connect({.trust = trust_of("ours")})->get(one, {100}).value()) << size;
    }
}

TEST_F(RemoteTierTest, AFunctionThatMissesAgainAndAgainAsksOnce)
{
    put(make_entry(k_decode, 2));
    SetClock clock;
    const auto remote = connect({}, clock);
    const auto store = open_with(remote, "a");
    const auto look_up = [&] {
        EXPECT_FALSE(take(store->header(m_entry.header.key)));
        EXPECT_EQ(store->variants(k_decode).value().size(), 1U);
    };
    look_up();
    const auto asked = m_shared->asked.load();
    for (int i = 0; i < 100; ++i) look_up();
    EXPECT_EQ(m_shared->asked, asked);
    put(m_entry); // by another machine
    look_up();
    clock.since_start += 11'000'000;
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    EXPECT_EQ(store->variants(k_decode).value().size(), 2U);
}

TEST_F(RemoteTierTest, AnObjectThatThisProcessPutsIsThereAtOnce)
{
    const auto remote = connect();
    const store::Name name = store::ImageName{sha256(m_image)};
    EXPECT_FALSE(remote->get(name, {1'000'000}).value());
    ASSERT_TRUE(succeeded(remote->put(name, m_image)));
    EXPECT_TRUE(remote->get(name, {1'000'000}).value());
}

TEST_F(RemoteTierTest, AReadOnlyOneIsNotWritten)
{
    const auto remote = connect({.read_only = true});
    EXPECT_TRUE(failed_with(remote->put(store::ImageName{}, as_bytes("x")), ErrorCode::permission_denied, "read-only"));
    EXPECT_TRUE(failed_with(remote->remove(store::ImageName{}), ErrorCode::permission_denied, "read-only"));
    EXPECT_EQ(m_shared->asked, 0U);
}

TEST_F(RemoteTierTest, ALayerThatFailsHidesNothing)
{
    put(m_entry, {m_image});
    auto store = take(LocalStore::open(m_root / "a"));
    auto broken = std::make_shared<SharedObjects>();
    broken->fault = Error{ErrorCode::io_failed, "broken"};
    store->add_layer(std::make_shared<SharedTier>(broken), {});
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
    EXPECT_EQ(store->functions().value().size(), 1U);
    EXPECT_EQ(store->variants(k_prompt).value().size(), 1U);
    EXPECT_EQ(store->by_last_use(k_prompt).value().size(), 1U);
    store->add_layer(connect(), {});
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
}

} // namespace
} // namespace warmgraph::test::remote_tier_test
