// A process sends its objects to remotes behind its calls, and nothing is lost if they fail.
#include <condition_variable>
#include <mutex>

#include <signal.h>

#include "child_process.hpp"
#include "remote_fixture.hpp"
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/remote/lasting_counts.hpp"
#include "warmgraph/remote/uploads.hpp"

namespace warmgraph::test::uploads_test {
namespace {

using remote::Uploads;
using store::RemoteMark;
using namespace std::chrono_literals;

constexpr auto k_long = 60s;

class UploadsTest : public RemoteTest {
protected:
    void publish(LocalStore& store, const Entry& entry)
    {
        ASSERT_TRUE(succeeded(store.publish_image(m_image)));
        ASSERT_TRUE(succeeded(store.publish(entry)));
    }
    [[nodiscard]] std::size_t unsent(LocalStore& store) const
    {
        return store.marks("test://remote", RemoteMark::unsent).value().size();
    }
};

TEST_F(UploadsTest, WhatIsPublishedIsSentAndAnotherMachineHits)
{
    const auto store = take(LocalStore::open(m_root / "a"));
    Uploads uploads(*store, {connect()}, 2s);
    publish(*store, m_entry);
    EXPECT_EQ(uploads.wait(k_long), 0U);
    EXPECT_EQ(unsent(*store), 0U);
    const auto other = open_with(connect(), "b");
    EXPECT_EQ(other->entry(m_entry.header.key).value(), m_entry);
    EXPECT_EQ(other->image(sha256(m_image)).value(), m_image);
    EXPECT_TRUE(store->check().value().empty()) << "the marks' folder is the cache's own";
}

TEST_F(UploadsTest, WhatARemoteGaveIsNotSentBack)
{
    put(m_entry, {m_image});
    const auto remote = connect();
    const auto store = open_with(remote, "a");
    Uploads uploads(*store, {remote}, 2s);
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    EXPECT_EQ(uploads.wait(k_long), 0U);
    EXPECT_EQ(remote->counts().puts, 0U);
}

TEST_F(UploadsTest, TombstonesStayLocal)
{
    const auto store = take(LocalStore::open(m_root / "a"));
    const auto remote = connect();
    Uploads uploads(*store, {remote}, 2s);
    Entry tombstone = make_entry(k_decode);
    tombstone.header.kind = cachefmt::EntryKind::tombstone;
    tombstone.header.info = {};
    tombstone.header.info.reason = "it synchronises";
    tombstone.graph = {};
    ASSERT_TRUE(succeeded(store->publish(tombstone)));
    EXPECT_EQ(uploads.wait(k_long), 0U);
    EXPECT_EQ(remote->counts().puts, 0U);
    EXPECT_EQ(unsent(*store), 0U);
}

TEST_F(UploadsTest, AReadOnlyRemoteIsNotWritten)
{
    const auto store = take(LocalStore::open(m_root / "a"));
    Uploads uploads(*store, {connect({.read_only = true})}, 2s);
    publish(*store, m_entry);
    EXPECT_EQ(unsent(*store), 0U);
    EXPECT_EQ(m_shared->asked, 0U);
}

TEST_F(UploadsTest, WhatADeadRemoteDidNotTakeIsSentByALaterProcess)
{
    m_shared->fault = Error{ErrorCode::io_failed, "down"};
    {
        const auto store = take(LocalStore::open(m_root / "a"));
        Uploads uploads(*store, {connect()}, 2s);
        publish(*store, m_entry);
        EXPECT_EQ(uploads.wait(k_long), 2U);
        EXPECT_EQ(unsent(*store), 2U);
    }
    m_shared->fault.reset();
    const auto store = take(LocalStore::open(m_root / "a"));
    Uploads uploads(*store, {connect()}, 2s);
    uploads.resume();
    EXPECT_EQ(uploads.wait(k_long), 0U);
    EXPECT_EQ(unsent(*store), 0U);
    EXPECT_EQ(open_with(connect(), "b")->entry(m_entry.header.key).value(), m_entry);
}

TEST_F(UploadsTest, AKilledProcessLosesNothing)
{
    m_shared->fault = Error{ErrorCode::io_failed, "down"};
    ChildProcess child([&] {
        const auto store = take(LocalStore::open(m_root / "a"));
        Uploads uploads(*store, {connect()}, 2s);
        publish(*store, m_entry);
        return ::kill(::getpid(), SIGKILL);
    });
    EXPECT_NE(child.wait(), 0);
    m_shared->fault.reset();
    const auto store = take(LocalStore::open(m_root / "a"));
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    Uploads uploads(*store, {connect()}, 2s);
    uploads.resume();
    EXPECT_EQ(uploads.wait(k_long), 0U);
    EXPECT_EQ(open_with(connect(), "b")->entry(m_entry.header.key).value(), m_entry);
}

/// A backend whose puts wait until they are let go, or the process ends.
class HeldTier final : public store::Tier {
public:
    Result<std::optional<store::StampedBytes>> get(const store::Name&, store::ReadLimit) override
    {
        return std::nullopt;
    }
    Result<void> put(const store::Name&, ByteView, store::PutMode) override
    {
        while (!*stop) std::this_thread::sleep_for(5ms);
        return fail(ErrorCode::io_failed, "the process ends");
    }
    Result<void> remove(const store::Name&) override { return {}; }
    Result<std::vector<store::Name>> list(const store::Scope&) override { return std::vector<store::Name>{}; }
    std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(UploadsTest, APublishDoesNotWaitAndTheEndWaitsUntilTheDeadline)
{
    auto backend = std::make_unique<HeldTier>();
    remote::RemoteOptions options{.label = "test://remote", .stop = backend->stop};
    const auto remote = std::make_shared<remote::RemoteTier>(std::move(backend), options);
    const auto store = take(LocalStore::open(m_root / "a"));
    {
        Uploads uploads(*store, {remote}, 50ms);
        publish(*store, m_entry); // would wait for ever
        EXPECT_EQ(uploads.wait(1ms), 2U);
    }
    EXPECT_EQ(unsent(*store), 2U);
    publish(*store, make_entry(k_prompt, 1, "", {m_image}));
    EXPECT_EQ(unsent(*store), 3U) << "objects after the end are only marked";
}

TEST_F(UploadsTest, AnObjectThatIsGoneIsForgotten)
{
    const auto store = take(LocalStore::open(m_root / "a"));
    ASSERT_TRUE(succeeded(store->set_mark("test://remote", RemoteMark::unsent, store::to_text(m_entry.header.key))));
    EXPECT_EQ(unsent(*store), 1U);
    EXPECT_TRUE(store->marks("test://other", RemoteMark::unsent).value().empty());
    EXPECT_TRUE(store->marks("test://remote", RemoteMark::refused).value().empty());
    Uploads uploads(*store, {connect()}, 2s);
    uploads.resume();
    EXPECT_EQ(uploads.wait(k_long), 0U);
    EXPECT_EQ(unsent(*store), 0U);
}

TEST_F(UploadsTest, DamagedAndForeignMarksAreNotRead)
{
    const auto store = take(LocalStore::open(m_root / "a"));
    ASSERT_TRUE(succeeded(store->set_mark("test://remote", RemoteMark::unsent, store::to_text(m_entry.header.key))));
    const std::string file = names_in(m_root / "a" / "remotes").at(0);
    write(m_root / "a" / "remotes" / file, "entries/../../etc/passwd");
    EXPECT_EQ(unsent(*store), 0U);
    write(m_root / "a" / "remotes" / "notes.txt", "mine");
    EXPECT_EQ(unsent(*store), 0U);
}

TEST(WordOfARemote, IsALabelForCounters)
{
    using remote::word_of;
    EXPECT_EQ(word_of("s3://models/warmgraph"), "s3.models-warmgraph");
    EXPECT_EQ(word_of("redis://[::1]:6379/0"), "redis.---1--6379-0");
    EXPECT_EQ(word_of("file:///srv/cache"), "file.srv-cache");
    const std::string longest = word_of("https://" + std::string(200, 'h') + "/a");
    EXPECT_EQ(longest.size(), 48U);
    EXPECT_NE(longest, word_of("https://" + std::string(200, 'h') + "/b"));
}

TEST_F(UploadsTest, CountsLastLongerThanTheProcess)
{
    const auto store = take(LocalStore::open(m_root / "a"));
    for (int i = 0; i < 2; ++i) {
        const auto remote = connect();
        const remote::LastingCounts counts(*store, {remote});
        Uploads uploads(*store, {remote}, 2s);
        publish(*store, m_entry);
        ASSERT_EQ(uploads.wait(k_long), 0U);
        m_shared->fault = Error{ErrorCode::io_failed, "down"};
        static_cast<void>(remote->get(m_entry.header.key, {1000}));
        m_shared->fault.reset();
        store->listen({});
    }
    const auto totals = remote::totals(*store);
    ASSERT_EQ(totals.size(), 1U);
    const remote::RemoteTotal& total = totals.at("test.remote");
    EXPECT_GE(total.puts, 3U) << "the image and twice the entry";
    EXPECT_GT(total.bytes_written, m_image.size());
    EXPECT_EQ(total.errors, 2U);
    EXPECT_TRUE(store->check().value().empty());
}

} // namespace
} // namespace warmgraph::test::uploads_test
