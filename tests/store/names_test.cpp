// Names that come from outside the library, and the file names that are made of them.
#include <cstring>

#include "store_fixture.hpp"
#include "warmgraph/cachefmt/key.hpp"

// Hides the C library's function in this test program: it returns the longest name that a host may have.
extern "C" int gethostname(char* name, std::size_t size) noexcept
{
    const std::string longest(63, 'h');
    std::strncpy(name, longest.c_str(), size);
    return 0;
}

namespace warmgraph::test::names_test {
namespace {

using namespace std::string_literals;

class LongestName final : public ForwardingFileSystem {
public:
    std::string longest;

protected:
    Result<void> write_new_in(FileSystem& inner, const Path& path, ByteView bytes, std::uint32_t mode,
                              Durability durability) override
    {
        const std::string name = path.filename().string();
        if (name.size() > longest.size()) longest = name;
        return ForwardingFileSystem::write_new_in(inner, path, bytes, mode, durability);
    }
};

struct BadName {
    std::string name;
    std::string says;
};

std::vector<BadName> bad_names()
{
    return {
        {"", "is empty"},
        {"a/b", "'a/b' has '/' at byte 1"},
        {"/etc/passwd", "has '/' at byte 0"},
        {"..", "starts with '.'"},
        {".", "starts with '.'"},
        {"../../x", "has '/' at byte 2"},
        {".hidden", "starts with '.'"},
        {"-rf", "starts with '-'"},
        {"a\0b"s, "has '\\x00' at byte 1"},
        {"a\nb", "has '\\x0a' at byte 1"},
        {"a b", "has ' ' at byte 1"},
        {"mod\xc3\xa8le", "has '\\xc3' at byte 3"},
        {"a\\b", "has '\\' at byte 1"},
        {"a:b", "has ':' at byte 1"},
        {std::string(300, 'n'), "has 300 bytes, at most 128"},
        {std::string(129, 'n'), "has 129 bytes, at most 128"},
    };
}

TEST(CheckName, SaysWhichRuleIsBrokenAndHowToRepairIt)
{
    for (const BadName& bad : bad_names()) {
        EXPECT_TRUE(
            failed_with(cachefmt::check_name("function name", bad.name), ErrorCode::invalid_argument, bad.says));
        EXPECT_TRUE(
            failed_with(cachefmt::check_name("function name", bad.name), ErrorCode::invalid_argument, "function name"));
    }
    EXPECT_EQ(cachefmt::check_name("function name", "a/b").error().message,
              "function name 'a/b' has '/' at byte 1: use letters, digits, '.', '_' and '-'");
}

TEST(CheckName, TakesOrdinaryNames)
{
    for (const std::string& name : {"decode"s, "a"s, "Llama-3.1_8B"s, "0"s, "_x"s, "a..b"s, std::string(128, 'n')}) {
        EXPECT_TRUE(succeeded(cachefmt::check_name("model", name)));
    }
}

class KeyNames : public StoreTest {};

/// eCryptfs allows file names of up to 143 bytes. They must suffice for any host and process.
TEST_F(KeyNames, FitFileSystemsWithShortNames)
{
    LongestName files;
    const auto store = open({}, files);
    const Entry entry = make_entry(k_decode);
    ASSERT_TRUE(succeeded(store->publish(entry)));
    EXPECT_THAT(files.longest, HasSubstr("hhhhhhh_"));
    EXPECT_LE(files.longest.size(), 143U) << files.longest;
    ASSERT_TRUE(store->begin_load(entry.header.key, {"driver", "device"}).value());
    EXPECT_LE(files.longest.size(), 143U) << files.longest;
}

TEST_F(KeyNames, EveryCallRefusesABadNameAndTouchesNothing)
{
    const auto store = open();
    for (const BadName& bad : bad_names()) {
        for (int part = 0; part < 3; ++part) {
            FunctionKey function = k_decode;
            (part == 0 ? function.model_info : part == 1 ? function.rank : function.function) = bad.name;
            if (part == 0 && bad.name.size() == 129) continue; // a model_info may be longer than the name of a model
            const Entry entry = make_entry(function);
            const EntryKey& key = entry.header.key;
            EXPECT_TRUE(failed_with(store->publish(entry), ErrorCode::invalid_argument)) << bad.says;
            EXPECT_TRUE(failed_with(store->entry(key), ErrorCode::invalid_argument)) << bad.says;
            EXPECT_TRUE(failed_with(store->header(key), ErrorCode::invalid_argument)) << bad.says;
            EXPECT_TRUE(failed_with(store->variants(function), ErrorCode::invalid_argument)) << bad.says;
            EXPECT_TRUE(failed_with(store->remove(key), ErrorCode::invalid_argument)) << bad.says;
            EXPECT_TRUE(failed_with(store->try_record_lock(key), ErrorCode::invalid_argument)) << bad.says;
            store->add_usage(function, {.hits = 1});
            EXPECT_EQ(store->usage(function).hits, 0U);
        }
    }
    EXPECT_TRUE(names_in(m_root).empty());
}

TEST_F(KeyNames, TheCachesOwnFoldersAreNoModels)
{
    const auto store = open();
    for (const char* name : {"images", "quarantine", "autotune", "profile"}) {
        EXPECT_TRUE(failed_with(store->publish(make_entry({name, "rank", "f"})), ErrorCode::invalid_argument, name));
    }
}

TEST_F(KeyNames, TheLongestNamesThatAreAllowedWork)
{
    const auto store = open();
    const std::string longest(128, 'n');
    const FunctionKey function{cachefmt::model_info(longest, "cuda", "dynamic", {}),
                               "world2147483647global_rank2147483646_tp_rank2147483647_pp_rank2147483647", longest};
    EXPECT_TRUE(succeeded(store->publish(make_entry(function))));
    EXPECT_EQ(store->functions().value(), std::vector{function});
}

TEST_F(KeyNames, FunctionsIgnoresFoldersThatAreNoNames)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode))));
    fs::create_directories(m_root / "a b" / "rank" / "f");
    fs::create_directories(m_root / ".git" / "rank" / "f");
    fs::create_directories(m_root / "images" / "rank" / "f");
    const fs::path model = m_root / k_decode.model_info;
    write(m_root / "model" / k_decode.rank / "f" / "usage.json", "");
    write(model / "-rank" / "f" / "usage.json", "");
    write(model / "world1" / "f" / "usage.json", "");
    write(model / k_decode.rank / "f$" / "usage.json", "");
    write(model / k_decode.rank / "file", "");
    fs::create_directory_symlink("/", model / k_decode.rank / "link");
    fs::create_directories(model / k_decode.rank / "empty");
    EXPECT_EQ(store->functions().value(), std::vector{k_decode});
}

TEST(ModelInfo, HasTheDocumentedForm)
{
    const std::string info = cachefmt::model_info("tiny-llama", "opencl", "static", {{"dtype", "f32"}});
    EXPECT_THAT(info, testing::MatchesRegex("tiny-llama_static_clgraphcache_[0-9a-f]+"));
    EXPECT_EQ(info.size(), std::string("tiny-llama_static_clgraphcache_").size() + 12);
    EXPECT_THAT(cachefmt::model_info("m", "cuda", "dynamic", {}), StartsWith("m_dynamic_cudagraphcache_"));
}

TEST(ModelInfo, ChangesWithModelAndConfigurationAndNothingElse)
{
    const auto hash = [](const std::string& info) { return info.substr(info.size() - 12); };
    const auto of = [&](const std::string& model, const std::map<std::string, std::string>& config) {
        return hash(cachefmt::model_info(model, "opencl", "static", config));
    };
    EXPECT_EQ(of("m", {{"a", "b"}}), of("m", {{"a", "b"}}));
    EXPECT_NE(of("m", {{"a", "b"}}), of("n", {{"a", "b"}}));
    EXPECT_NE(of("m", {{"a", "b"}}), of("m", {{"a", "c"}}));
    EXPECT_NE(of("m", {{"a", "b"}}), of("m", {}));
    EXPECT_NE(of("m", {{"a", "bc"}}), of("m", {{"ab", "c"}}));
    EXPECT_EQ(of("m", {}), hash(cachefmt::model_info("m", "cuda", "dynamic", {})));
}

TEST(ModelOf, IsTheModelThatTheInfoWasMadeOf)
{
    for (const char* model : {"m", "tiny-llama", "a_static_b", "x_static_clgraphcache_0123456789ab"}) {
        EXPECT_EQ(cachefmt::model_of(cachefmt::model_info(model, "cuda", "static", {})), model);
        EXPECT_EQ(cachefmt::model_of(cachefmt::model_info(model, "opencl", "dynamic", {})), model);
    }
    for (const char* other :
         {"", "m", "m_static_clgraphcache_0123", "m_static_othercache_0123456789ab", "m_odd_clgraphcache_0123456789ab",
          "_static_clgraphcache_0123456789ab", "m_static_clgraphcache_0123456789AB"}) {
        EXPECT_EQ(cachefmt::model_of(other), other);
    }
}

} // namespace
} // namespace warmgraph::test::names_test
