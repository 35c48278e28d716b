// The broken builds in tests/mutants: each must still say what it breaks, and which tests must notice it.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "repository.hpp"

namespace warmgraph::test::mutants_test {
namespace {

namespace fs = std::filesystem;

/// Spaces and line ends count as one space, as in tests/mutants/run.
std::string squeezed(const std::string& text)
{
    std::string result;
    std::istringstream words{text};
    for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
    return result;
}

struct Mutant {
    std::string name, what, in, find;
    bool has_put = false;
    std::vector<std::pair<std::string, std::string>> runs; ///< (program, filter) for each run
};

void read_line(Mutant& mutant, const std::string& key, const std::string& value)
{
    if (key == "what") mutant.what = value;
    if (key == "in") mutant.in = value;
    if (key == "find") mutant.find = value;
    if (key == "put") mutant.has_put = true;
    if (key == "run") mutant.runs.emplace_back(value.substr(0, value.find(' ')), value.substr(value.find(' ') + 1));
}

std::vector<Mutant> all_mutants()
{
    std::vector<Mutant> result;
    for (const fs::path& table : files_under("tests/mutants", {".txt"})) {
        std::istringstream lines{read_text(table)};
        for (std::string line; std::getline(lines, line);) {
            if (line.empty() || line.starts_with('#')) continue;
            if (line.starts_with('[')) {
                result.emplace_back().name = line.substr(1, line.find(']') - 1);
                continue;
            }
            const auto colon = line.find(':');
            if (colon == std::string::npos || result.empty())
                ADD_FAILURE() << table << ": " << line;
            else
                read_line(result.back(), line.substr(0, colon), squeezed(line.substr(colon + 1)));
        }
    }
    return result;
}

std::vector<fs::path> files_of(const std::string& place)
{
    if (fs::is_regular_file(source_dir() / place)) return {place};
    return files_under(place, {".cpp", ".hpp", ".h", ".cu", ".c"});
}

std::size_t count(const std::string& text, const std::string& part)
{
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

TEST(Mutants, ApplyEachInOnePlace)
{
    const auto mutants = all_mutants();
    EXPECT_GE(mutants.size(), 40U);
    std::set<std::string> names;
    for (const Mutant& mutant : mutants) {
        EXPECT_TRUE(names.insert(mutant.name).second) << mutant.name << " is there twice";
        EXPECT_FALSE(mutant.what.empty() || mutant.find.empty() || !mutant.has_put || mutant.runs.empty())
            << mutant.name << " lacks one of what, find, put, run";
        std::size_t found = 0;
        for (const fs::path& file : files_of(mutant.in)) found += count(squeezed(read_text(file)), mutant.find);
        EXPECT_EQ(found, 1U) << mutant.name << ": this text stands not once below " << mutant.in << ": " << mutant.find;
    }
}

TEST(Mutants, NameTestsThatThereAre)
{
    std::string targets, cases;
    for (const fs::path& file : files_under("tests", {".txt"}))
        if (file.filename() == "CMakeLists.txt") targets += read_text(file);
    static const std::regex k_case(R"re(TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,)re");
    std::set<std::string> suites;
    for (const fs::path& file : files_under("tests", {".cpp"})) {
        const std::string text = without_comments_and_strings(read_text(file));
        for (std::sregex_iterator at(text.begin(), text.end(), k_case), end; at != end; ++at) suites.insert(at->str(1));
    }
    static const std::regex k_suite(R"re((\w+)\.)re");
    for (const Mutant& mutant : all_mutants())
        for (const auto& [program, filter] : mutant.runs) {
            // The program "store_${name}_test" of a loop is known only by the last part of its name or by its source
            // file.
            const auto folder_ends = program.find('_');
            const std::string stem = program.substr(folder_ends + 1);
            const fs::path source = source_dir() / "tests" / program.substr(0, folder_ends) / (stem + ".cpp");
            EXPECT_TRUE(targets.find("(" + program) != std::string::npos || targets.find(stem) != std::string::npos ||
                        fs::exists(source))
                << mutant.name << " names " << program;
            for (std::sregex_iterator at(filter.begin(), filter.end(), k_suite), end; at != end; ++at)
                EXPECT_TRUE(suites.contains(at->str(1))) << mutant.name << " names the cases " << at->str();
        }
}

} // namespace
} // namespace warmgraph::test::mutants_test
