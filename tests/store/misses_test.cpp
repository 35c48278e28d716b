// The last misses of a function: they are kept under every policy, their number is limited, and any user may have
// written their file.
#include "child_process.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::misses_test {
namespace {

using store::Miss;
using store::MissEnd;

class MissesOfAFunction : public StoreTest {
protected:
    static Miss miss(const std::string& id, MissEnd end = MissEnd::ran)
    {
        Miss miss;
        miss.id = id;
        miss.time = "2026-11-23T10:11:12Z";
        miss.host = "here";
        miss.process = 4711;
        miss.policy = "read_only";
        miss.reason = "1 variant on disk, the nearest differs";
        miss.end = end;
        miss.call = sha256(Bytes(1));
        miss.variants = 1;
        miss.nearest = sha256(Bytes(2));
        miss.differences = {{"driver.version", "580", "570", "relax"}};
        miss.agree = 31;
        return miss;
    }
    static std::unique_ptr<LocalStore> open_to_read(const fs::path& root)
    {
        return take(LocalStore::open(root, {.access = store::StoreMode::read_only}));
    }
    fs::path m_file = folder() / "misses.jsonl";
};

TEST_F(MissesOfAFunction, AreReadAsTheyWereNoted)
{
    EXPECT_TRUE(open()->misses(k_decode)->list.empty());
    EXPECT_FALSE(fs::exists(m_file)) << "asking makes no file";
    open()->note_miss(k_decode, miss("1", MissEnd::thrown), R"({"facts": []})");
    const auto misses = take(open()->misses(k_decode));
    EXPECT_EQ(misses.newest_call, R"({"facts": []})");
    ASSERT_EQ(misses.list.size(), 1U);
    const Miss& read = misses.list.front();
    const Miss noted = miss("1", MissEnd::thrown);
    EXPECT_EQ(read.id, noted.id);
    EXPECT_EQ(read.time, noted.time);
    EXPECT_EQ(read.host, noted.host);
    EXPECT_EQ(read.process, noted.process);
    EXPECT_EQ(read.policy, noted.policy);
    EXPECT_EQ(read.reason, noted.reason);
    EXPECT_EQ(read.end, MissEnd::thrown);
    EXPECT_EQ(read.call, noted.call);
    EXPECT_EQ(read.variants, 1U);
    EXPECT_EQ(read.nearest, noted.nearest);
    EXPECT_EQ(read.agree, 31U);
    ASSERT_EQ(read.differences.size(), 1U);
    EXPECT_EQ(read.differences[0].fact, "driver.version");
    EXPECT_EQ(read.differences[0].recorded, "580");
    EXPECT_EQ(read.differences[0].now, "570");
    EXPECT_EQ(read.differences[0].cure, "relax");
}

TEST_F(MissesOfAFunction, AreTheLastSixteenNewestFirst)
{
    const auto store = open();
    for (int i = 0; i < 20; ++i) store->note_miss(k_decode, miss(std::to_string(i)), "");
    const auto list = store->misses(k_decode)->list;
    ASSERT_EQ(list.size(), store::k_most_misses);
    EXPECT_EQ(list.front().id, "19");
    EXPECT_EQ(list.back().id, "4");
}

TEST_F(MissesOfAFunction, ThatEndAgainReplaceThemselves)
{
    const auto store = open();
    store->note_miss(k_decode, miss("a"), "");
    store->note_miss(k_decode, miss("b"), "");
    store->note_miss(k_decode, miss("a", MissEnd::recorded), "");
    const auto list = store->misses(k_decode)->list;
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list.front().id, "a");
    EXPECT_EQ(list.front().end, MissEnd::recorded);
}

TEST_F(MissesOfAFunction, AreKeptByAStoreThatIsOnlyRead)
{
    open();
    open_to_read(m_root)->note_miss(k_decode, miss("1"), "");
    EXPECT_EQ(open_to_read(m_root)->misses(k_decode)->list.size(), 1U);
    EXPECT_EQ(open_to_read(m_root)->functions()->size(), 1U) << "so that the command can name it";
}

TEST_F(MissesOfAFunction, AreNotWrittenIntoAFolderWithoutTheMark)
{
    fs::create_directories(m_root);
    open_to_read(m_root)->note_miss(k_decode, miss("1"), "");
    EXPECT_TRUE(fs::is_empty(m_root));
}

TEST_F(MissesOfAFunction, AreCutWhereTheyAreLong)
{
    Miss large = miss("1");
    large.reason = std::string(100'000, 'r');
    large.differences.assign(1000, {std::string(9'000, 'f'), "\xff\xff", "\x1b[31m\n", ""});
    const auto store = open();
    for (int i = 0; i < 16; ++i) {
        large.id = std::to_string(i);
        store->note_miss(k_decode, large, std::string(10'000'000, ' '));
    }
    EXPECT_LE(fs::file_size(m_file), 2U << 20);
    const auto misses = take(store->misses(k_decode));
    EXPECT_EQ(misses.list.front().id, "15");
    EXPECT_EQ(misses.list.front().differences.size(), store::k_most_missed_facts);
    EXPECT_EQ(misses.newest_call, "");
}

TEST_F(MissesOfAFunction, OfAHostileFileAreIgnoredWithAWordAndReplaced)
{
    open()->note_miss(k_decode, miss("1"), "");
    std::ifstream file(m_file);
    std::string call, good;
    std::getline(file, call);
    std::getline(file, good);
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string line = good;
        line.replace(line.find(from), from.size(), to);
        return "\n" + line + "\n";
    };
    std::string many = "\n";
    for (int i = 0; i < 17; ++i) many += good + "\n";
    const std::vector<std::string> hostile{"\n{\n",
                                           "\n7\n",
                                           "\nnull\n",
                                           "\n{}\n",
                                           "\n" + std::string(100'000, '[') + "\n",
                                           many,
                                           with("4711", "-1"),
                                           with("\"ran as it is\"", "\"flew\""),
                                           with("\"here\"", "7"),
                                           with("\"here\"", '"' + std::string(9'000, 'x') + '"'),
                                           with("[{\"cure\"", "[7,{\"cure\""),
                                           with("\"agree\":31", "\"agree\":\"31\""),
                                           with(to_hex(sha256(Bytes(2))), "3f9a"),
                                           std::string(3U << 20, '\n'),
                                           std::string("\0\xff\n\0", 4)};
    for (const std::string& text : hostile) {
        write(m_file, text);
        const auto misses = open()->misses(k_decode);
        ASSERT_FALSE(misses) << text.substr(0, 200);
        EXPECT_THAT(misses.error().message, HasSubstr("misses.jsonl: "));
        EXPECT_EQ(open()->check()->size(), 1U) << text.substr(0, 200);
        open()->note_miss(k_decode, miss("2"), "");
        EXPECT_EQ(open()->misses(k_decode)->list.size(), 1U) << text.substr(0, 200);
        EXPECT_TRUE(open()->check()->empty());
    }
}

TEST_F(MissesOfAFunction, CostALineAndNotTheCallWhereNothingCanBeWritten)
{
    open();
    fs::create_directories(m_file); // makes a folder where the file should be
    open()->note_miss(k_decode, miss("1"), "");
    EXPECT_FALSE(open()->misses(k_decode));
    fs::remove(m_file);

    FaultyFileSystem files;
    const auto store = LocalStore::open(m_root, {}, files);
    ASSERT_TRUE(store);
    for (std::size_t at = 1; at < 40; ++at) {
        files.fail_at(at, ErrorCode::io_failed);
        (*store)->note_miss(k_decode, miss(std::to_string(at)), "");
    }
    EXPECT_TRUE(open()->misses(k_decode)) << "whole, or as it was";
}

TEST_F(MissesOfAFunction, AreAllThereWhenManyProcessesMiss)
{
    open();
    std::vector<ChildProcess> children;
    for (int i = 0; i < 8; ++i)
        children.emplace_back([&] {
            open_to_read(m_root)->note_miss(k_decode, miss("process" + std::to_string(i)), "");
            return 0;
        });
    for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
    const auto misses = open()->misses(k_decode);
    ASSERT_TRUE(misses) << "never half a file";
    EXPECT_GE(misses->list.size(), 1U) << "one that finds the lock taken for long gives up";
}

TEST_F(MissesOfAFunction, OfACallerThatRefusesHaveOneLineEachAndLeaveTheGuardsOfTheMissBefore)
{
    open()->note_miss(k_decode, miss("1"), R"({"facts": []})");
    Miss refused = miss("refused", MissEnd::refused);
    for (const std::uint64_t calls : {1U, 3U, 12U}) {
        refused.calls = calls;
        open()->note_miss(k_decode, refused, "");
    }
    const auto misses = take(open()->misses(k_decode));
    ASSERT_EQ(misses.list.size(), 2U);
    EXPECT_EQ(misses.list.front().calls, 12U);
    EXPECT_EQ(misses.list.back().calls, 0U) << "which nobody counted";
    EXPECT_EQ(misses.newest_call, R"({"facts": []})");
}

TEST_F(MissesOfAFunction, GoWithTheFunctionWhenItIsCleared)
{
    open()->note_miss(k_decode, miss("1"), "");
    ASSERT_TRUE(open()->clear({.function = "decode"}));
    EXPECT_FALSE(fs::exists(folder()));
}

} // namespace
} // namespace warmgraph::test::misses_test
