// What the documents say exists, exists.
#include <algorithm>
#include <iterator>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "repository.hpp"

namespace warmgraph::test {
namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t k_longest_example = 25;

// `text` without fenced blocks, which hold commands and output.
std::string prose_of(const std::string& text)
{
    static const std::regex k_fence(R"re(```[^`]*```)re");
    return std::regex_replace(text, k_fence, "");
}

// A path from the repository's root or the document's own folder, or a header as it is included ("warmgraph/base/x.hpp")
// or for short ("base/x.hpp").
bool exists_in_repository(const fs::path& document, const std::string& path)
{
    if (fs::exists(source_dir() / path) || fs::exists(source_dir() / document.parent_path() / path)) return true;
    const auto headers = files_under(".", {".hpp", ".h"});
    return std::ranges::any_of(headers, [&](const fs::path& header) {
        return header.string().ends_with("/include/" + path) || header.string().ends_with("/include/warmgraph/" + path);
    });
}

// Links that are no URL, and `code spans` that are a path below a folder of the repository. (`usage.json` alone may be a
// file of the cache.)
std::vector<std::string> paths_named_in(const std::string& prose)
{
    static const std::regex k_link(R"re(\]\(([^)#: ]+)[^): ]*\))re");
    static const std::regex k_span(R"re(`(?:\./)?([\w-]+/[\w.+/-]+)`)re");
    std::vector<std::string> paths;
    for (std::sregex_iterator at(prose.begin(), prose.end(), k_link), end; at != end; ++at) paths.push_back(at->str(1));
    for (std::sregex_iterator at(prose.begin(), prose.end(), k_span), end; at != end; ++at) {
        const std::string path = at->str(1);
        const std::string folder = path.substr(0, path.find('/'));
        // What a build makes is not in the repository.
        if (folder != "build" && (folder == "warmgraph" || fs::is_directory(source_dir() / folder)))
            paths.push_back(path);
    }
    return paths;
}

TEST(Documents, NameOnlyFilesThatExist)
{
    auto documents = files_under("docs", {".md"});
    documents.insert(documents.end(), {"README.md", "CHANGELOG.md"});
    for (const fs::path& document : documents) {
        for (const std::string& path : paths_named_in(prose_of(read_text(document)))) {
            EXPECT_TRUE(exists_in_repository(document, path)) << document << " names " << path;
        }
    }
}

TEST(Documents, ListTheFoldersInDataFlowOrder)
{
    const std::string text = read_text("docs/ARCHITECTURE.md");
    std::size_t last = 0;
    for (const char* folder :
         {"base/", "cachefmt/", "guards/", "store/", "backends/", "replay/", "capture/", "tool/"}) {
        const std::regex line("(^|\n)[ |*`-]*" + std::string(folder));
        std::smatch match;
        ASSERT_TRUE(std::regex_search(text, match, line)) << "no line of ARCHITECTURE.md begins with " << folder;
        const auto at = static_cast<std::size_t>(match.position());
        EXPECT_GE(at, last) << folder << " comes too early";
        last = at;
    }
}

/// What is longer is not read.
TEST(Documents, AreBegunByAReadmeOfAtMost700Words)
{
    std::istringstream words{read_text("README.md")};
    EXPECT_LE(std::distance(std::istream_iterator<std::string>{words}, {}), 700);
}

// That it compiles and runs is a test of its own: engineering.readme_example_runs_cold, _warm.
TEST(Documents, ShowAnExampleOfAtMost25Lines)
{
    const std::string readme = read_text("README.md");
    static const std::regex k_block("```cpp\n([^`]*)```");
    std::smatch match;
    ASSERT_TRUE(std::regex_search(readme, match, k_block)) << "README.md has no ```cpp block";
    const std::string code = match.str(1);
    EXPECT_LE(std::ranges::count(code, '\n'), k_longest_example);
    EXPECT_NE(code.find("main("), std::string::npos) << "the example is no complete program";
}

} // namespace
} // namespace warmgraph::test
