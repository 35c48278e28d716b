// The folders are the architecture: data flows from top to bottom, and a folder may only use folders above it.
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "repository.hpp"

namespace warmgraph::test::folder_direction_test {
namespace {

namespace fs = std::filesystem;

// For each folder, the other folders that it may include. Only backends/built and replayer list all backends.
const std::map<std::string, std::set<std::string>> k_allowed{
    {"base", {}},
    {"cachefmt", {"base"}},
    {"guards", {"base", "cachefmt"}},
    {"store", {"base", "cachefmt"}},
    {"profile", {"base", "cachefmt", "store"}},
    {"remote", {"base", "cachefmt", "store", "profile"}},
    {"backends/api", {"base", "cachefmt"}},
    {"backends/opencl", {"base", "cachefmt", "backends/api"}},
    {"backends/cuda", {"base", "cachefmt", "backends/api"}},
    {"backends/built", {"base", "cachefmt", "backends/api", "backends/opencl", "backends/cuda"}},
    {"precompile", {"base", "cachefmt", "store", "backends/api"}},
    {"replay", {"base", "cachefmt", "backends/api"}},
    {"capture", {"base", "cachefmt", "guards", "backends/api", "replay"}},
    {"ranks", {"base", "cachefmt"}},
    {"replayer",
     {"base", "cachefmt", "guards", "store", "backends/api", "backends/opencl", "backends/cuda", "replay", "ranks"}},
    {"api", {"base", "backends/api"}},
    {"device", {"base", "cachefmt", "store", "backends/api", "backends/built", "precompile", "capture", "api"}},
    {"autotune", {"base", "cachefmt", "store", "backends/api", "precompile", "capture", "api", "device"}},
    {"bundle", {"base", "cachefmt", "guards", "store", "autotune", "profile", "backends/api", "precompile"}},
    {"preload", {"base", "cachefmt", "store", "backends/api", "replay", "capture", "api"}},
    {"pairs", {"base", "cachefmt", "store", "backends/api", "capture"}},
    {"call",
     {"base", "cachefmt", "guards", "store", "autotune", "profile", "backends/api", "precompile", "replay", "capture",
      "api", "device", "preload", "pairs"}},
    {"facade",
     {"base", "cachefmt", "guards", "store", "autotune", "profile", "backends/api", "backends/built", "precompile",
      "bundle", "replay", "capture", "ranks", "api", "device", "preload", "pairs", "call", "remote"}},
    {"c", {"base", "cachefmt", "facade", "backends/api", "api"}},
    {"tool",
     {"base", "cachefmt", "guards", "store", "profile", "bundle", "backends/api", "backends/built", "precompile",
      "ranks", "remote"}},
};

std::set<std::string> public_headers()
{
    std::set<std::string> headers;
    std::istringstream list(WARMGRAPH_PUBLIC_HEADERS);
    for (std::string path; std::getline(list, path, ',');) headers.insert(path);
    return headers;
}

// The folder of k_allowed in which the file is.
std::optional<std::string> folder_of(const fs::path& file)
{
    auto part = file.begin();
    std::string folder = part->string();
    if (folder == "backends" && ++part != file.end()) folder += "/" + part->string();
    return k_allowed.contains(folder) ? std::optional(folder) : std::nullopt;
}

// The file to which an include in the file `from` refers. Returns nullopt when the file is not in the repository.
std::optional<fs::path> resolve(const fs::path& from, const std::string& include)
{
    const fs::path beside = (from.parent_path() / include).lexically_normal();
    if (fs::exists(source_dir() / beside)) return beside;
    for (const auto& [folder, ignored] : k_allowed) {
        for (const char* face : {"include", "src"}) {
            const fs::path candidate = fs::path(folder) / face / include;
            if (fs::exists(source_dir() / candidate)) return candidate;
        }
    }
    return std::nullopt;
}

std::vector<fs::path> sources_under(const fs::path& folder)
{
    return files_under(folder, {".cpp", ".hpp", ".h", ".c"});
}

TEST(Folders, UseOnlyTheOnesAboveThem)
{
    std::size_t looked_at = 0;
    for (const auto& [folder, allowed] : k_allowed) {
        for (const fs::path& file : sources_under(folder)) {
            for (const Include& include : includes_of(read_text(file))) {
                const auto target = resolve(file, include.path);
                if (!target) {
                    // If such a header was in a folder that is not known here, this test would not check it.
                    EXPECT_FALSE(include.path.starts_with("warmgraph/"))
                        << file << ":" << include.line << " includes " << include.path << ", which is in no folder";
                    continue;
                }
                ++looked_at;
                const auto used = folder_of(*target);
                EXPECT_TRUE(used && (*used == folder || allowed.contains(*used)))
                    << file << ":" << include.line << " includes " << *target << ", which is not above " << folder;
            }
        }
    }
    EXPECT_GT(looked_at, 40U) << "the test found hardly any source";
}

TEST(Folders, AreAllKnownToThisTest)
{
    for (const auto& entry : fs::directory_iterator(source_dir() / "backends")) {
        if (!entry.is_directory()) continue;
        EXPECT_TRUE(k_allowed.contains("backends/" + entry.path().filename().string())) << entry.path();
    }
    for (const auto& entry : fs::directory_iterator(source_dir())) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with('.')) continue; // this is not a folder with sources
        if (!fs::is_directory(entry.path() / "include") && !fs::is_directory(entry.path() / "src")) continue;
        EXPECT_TRUE(k_allowed.contains(name)) << entry.path();
    }
}

// device.hpp only declares the types of the compiler and of recordings. Without the headers that define them, replay
// cannot call them.
TEST(Folders, LetReplayCompileAndRecordNothing)
{
    std::size_t looked_at = 0;
    std::vector<fs::path> sources = sources_under("replay");
    std::ranges::copy(sources_under("replayer"), std::back_inserter(sources));
    for (const fs::path& file : sources) {
        for (const Include& include : includes_of(read_text(file))) {
            ++looked_at;
            EXPECT_NE(include.path, "warmgraph/backends/compiler.hpp") << file << ":" << include.line;
            EXPECT_NE(include.path, "warmgraph/backends/recording.hpp") << file << ":" << include.line;
        }
    }
    EXPECT_GT(looked_at, 10U);
    EXPECT_TRUE(fs::exists(source_dir() / "backends/api/include/warmgraph/backends/compiler.hpp"));
    EXPECT_TRUE(fs::exists(source_dir() / "backends/api/include/warmgraph/backends/recording.hpp"));
}

TEST(Folders, LetPublicHeadersAndSamplesSeeOnlyPublicHeaders)
{
    const std::set<std::string> headers = public_headers();
    std::vector<fs::path> outside = sources_under("samples");
    outside.insert(outside.end(), headers.begin(), headers.end());
    for (const fs::path& file : outside) {
        for (const Include& include : includes_of(read_text(file))) {
            const auto target = resolve(file, include.path);
            if (!target || !folder_of(*target)) continue;
            EXPECT_TRUE(headers.contains(target->string()))
                << file << ":" << include.line << " includes " << *target << ", which is not installed";
        }
    }
}

} // namespace
} // namespace warmgraph::test::folder_direction_test
