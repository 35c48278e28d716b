// Everything that the documents name must exist.
#include <algorithm>
#include <iterator>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "repository.hpp"

namespace warmgraph::test::documents_test {
namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t k_longest_example = 25;

const std::regex& fence()
{
    static const std::regex fence(R"re(```[^`]*```)re");
    return fence;
}

std::string prose_of(const std::string& text) { return std::regex_replace(text, fence(), ""); }

// The code blocks of a document: commands, output and listings.
std::string fenced_blocks_of(const std::string& text)
{
    std::string blocks;
    for (std::sregex_iterator at(text.begin(), text.end(), fence()), end; at != end; ++at) blocks += at->str() + "\n";
    return blocks;
}

std::vector<fs::path> all_documents()
{
    auto documents = files_under("docs", {".md"});
    documents.insert(documents.end(), {"README.md", "CHANGELOG.md", "samples/README.md", "samples/llm/README.md"});
    return documents;
}

// Whether the path names a file, from the repository's root or from the document's folder. The path may also be a
// header as in an #include ("warmgraph/base/x.hpp"), or in short form ("base/x.hpp").
bool exists_in_repository(const fs::path& document, const std::string& path)
{
    if (fs::exists(source_dir() / path) || fs::exists(source_dir() / document.parent_path() / path)) return true;
    const auto headers = files_under(".", {".hpp", ".h"});
    return std::ranges::any_of(headers, [&](const fs::path& header) {
        return header.string().ends_with("/include/" + path) || header.string().ends_with("/include/warmgraph/" + path);
    });
}

// Returns false for a file that a build makes.
bool is_of_the_repository(const std::string& path)
{
    const std::string folder = path.substr(0, path.find('/'));
    return folder != "build" && (folder == "warmgraph" || fs::is_directory(source_dir() / folder));
}

// Paths of sources and documents in the blocks, if they are below a folder of the repository. Other words with a slash
// are ignored.
std::vector<std::string> paths_in_blocks(const std::string& blocks)
{
    static const std::regex k_path(
        R"re((?:^|[\s("'<])(?:\./)?((?:[\w-]+/)+[\w.-]+\.(?:cpp|hpp|h|c|md|cl|cu|py|fbs|cmake))\b)re");
    std::vector<std::string> paths;
    for (std::sregex_iterator at(blocks.begin(), blocks.end(), k_path), end; at != end; ++at)
        if (is_of_the_repository(at->str(1))) paths.push_back(at->str(1));
    return paths;
}

// Links that are not URLs, and `code spans` that name a path below a folder of the repository. (A name without a
// folder, such as `usage.json`, may be a file in the cache.)
std::vector<std::string> paths_named_in(const std::string& prose)
{
    static const std::regex k_link(R"re(\]\(([^)#: ]+)[^): ]*\))re");
    static const std::regex k_span(R"re(`(?:\./)?([\w-]+/[\w.+/-]+)`)re");
    std::vector<std::string> paths;
    for (std::sregex_iterator at(prose.begin(), prose.end(), k_link), end; at != end; ++at) paths.push_back(at->str(1));
    for (std::sregex_iterator at(prose.begin(), prose.end(), k_span), end; at != end; ++at) {
        if (is_of_the_repository(at->str(1))) paths.push_back(at->str(1));
    }
    return paths;
}

TEST(Documents, NameOnlyFilesThatExist)
{
    std::size_t in_blocks = 0;
    for (const fs::path& document : all_documents()) {
        const std::string text = read_text(document);
        std::vector<std::string> paths = paths_in_blocks(fenced_blocks_of(text));
        in_blocks += paths.size();
        std::ranges::copy(paths_named_in(prose_of(text)), std::back_inserter(paths));
        for (const std::string& path : paths)
            EXPECT_TRUE(exists_in_repository(document, path)) << document << " names " << path;
    }
    EXPECT_GT(in_blocks, 20U)
        << "ARCHITECTURE.md alone has more in its blocks: they look different from what is expected";
}

// Finds "./dev gpu-test FILTER", in text and in code blocks.
TEST(Documents, NameOnlyCommandsOfDevThatThereAre)
{
    static const std::regex k_command(R"re(\./dev ([a-z][a-z-]*))re");
    const std::string dev = read_text("dev");
    for (const fs::path& document : all_documents()) {
        const std::string text = read_text(document);
        for (std::sregex_iterator at(text.begin(), text.end(), k_command), end; at != end; ++at)
            EXPECT_NE(dev.find("\n" + at->str(1) + ") "), std::string::npos) << document << " names " << at->str();
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

/// A longer README would not be read.
TEST(Documents, AreBegunByAReadmeOfAtMost700Words)
{
    std::istringstream words{read_text("README.md")};
    EXPECT_LE(std::distance(std::istream_iterator<std::string>{words}, {}), 700);
}

// The tests engineering.readme_example_runs_cold and _warm check that the example compiles and runs.
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
} // namespace warmgraph::test::documents_test
