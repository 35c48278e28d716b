// Promise Q2: fails if a test file, a fuzz target or a sample is not built or not run.
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "repository.hpp"

namespace warmgraph::test::inventory_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct CompiledFile {
    std::string target;
    std::string command;
};

/// The sources that a batch file (WARMGRAPH_UNITY) includes. For any other file, the file itself.
std::vector<fs::path> sources_of(const fs::path& file)
{
    if (file.parent_path().filename() != "Unity") return {file};
    std::vector<fs::path> sources;
    const std::regex include(R"re(^#include "(.+)"$)re");
    std::ifstream batch(file);
    for (std::string line; std::getline(batch, line);)
        if (std::smatch match; std::regex_match(line, match, include)) sources.emplace_back(match.str(1));
    return sources;
}

// The compiled files by the path of their source, relative to the repository. Some sources are built into several
// targets.
std::multimap<std::string, CompiledFile> compiled_files()
{
    std::ifstream file(fs::path(WARMGRAPH_BINARY_DIR) / "compile_commands.json");
    std::multimap<std::string, CompiledFile> compiled;
    // The target is found in "-o tests/base/CMakeFiles/base_bytes_test.dir/bytes_test.cpp.o", because the key "output"
    // needs CMake 3.26.
    const std::regex target(R"re( -o \S*CMakeFiles/([^/ ]+)\.dir/)re");
    for (const json& command : json::parse(file)) {
        std::smatch match;
        const auto line = command.at("command").get<std::string>();
        if (!std::regex_search(line, match, target)) continue;
        for (const fs::path& source : sources_of(command.at("file").get<std::string>()))
            compiled.emplace(source.lexically_relative(source_dir()).string(), CompiledFile{match.str(1), line});
    }
    return compiled;
}

struct Registered {
    std::string name;
    std::string command; ///< all words of the command
};

std::vector<Registered> registered_tests()
{
    const std::string ask = "'" WARMGRAPH_CTEST "' --test-dir '" WARMGRAPH_BINARY_DIR "' --show-only=json-v1";
    std::string text;
    std::FILE* pipe = ::popen(ask.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("cannot run " + ask);
    std::array<char, 65536> buffer;
    for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
    if (::pclose(pipe) != 0) throw std::runtime_error("failed: " + ask);
    std::vector<Registered> tests;
    const json listing = json::parse(text);
    for (const json& test : listing.at("tests")) {
        if (!test.contains("command")) continue; // a test without a command has no program: it is not built
        Registered entry{test.at("name").get<std::string>(), {}};
        for (const json& word : test.at("command")) entry.command += word.get<std::string>() + " ";
        tests.push_back(std::move(entry));
    }
    return tests;
}

bool runs(const std::vector<Registered>& tests, const std::string& target)
{
    const std::string binary = "/" + target + " ";
    return std::ranges::any_of(tests,
                               [&](const Registered& test) { return test.command.find(binary) != std::string::npos; });
}

/// Files that need a GPU are only checked for their syntax here (tests/support/check_syntax); `./dev gpu-test` runs
/// them.
bool needs_gpu(const CompiledFile& compiled)
{
    return compiled.command.find("-DWARMGRAPH_NEEDS_GPU") != std::string::npos;
}

/// Whether the file tests one of CUDA's libraries. Such a file is left out when the header of the library is missing.
bool needs_library(const fs::path& file)
{
    if (!file.string().starts_with("tests/gpu/")) return false;
    const std::string text = read_text(file);
    return text.find("#include <cublas") != std::string::npos || text.find("#include <cudnn.h>") != std::string::npos;
}

/// Fuzz targets. In sanitizer builds, warmgraph_fuzz makes the program and its test in one call.
bool is_fuzz_target(const CompiledFile& compiled) { return compiled.target.starts_with("fuzz_"); }

std::vector<fs::path> test_sources()
{
    std::vector<fs::path> sources;
    for (const fs::path& file : files_under("tests", {".cpp", ".c"})) {
        // The packaging tests build these programs outside of this build.
        if (file.string().starts_with("tests/packaging/")) continue;
        sources.push_back(file);
    }
    return sources;
}

TEST(Inventory, BuildsEverySourceUnderTests)
{
    const auto compiled = compiled_files();
    for (const fs::path& file : test_sources()) {
        EXPECT_TRUE(compiled.contains(file.string()) || needs_library(file))
            << file << " is in no target: add it to its folder's CMakeLists.txt";
    }
}

TEST(Inventory, RunsEveryTestAndFuzzTarget)
{
    const auto compiled = compiled_files();
    const auto tests = registered_tests();
    for (const fs::path& file : test_sources()) {
        const std::string stem = file.stem().string();
        if (!stem.ends_with("_test") && !stem.ends_with("_fuzz")) continue;
        const auto targets = compiled.equal_range(file.string()); // if this is empty, the test above fails
        for (auto target = targets.first; target != targets.second; ++target)
            EXPECT_TRUE(needs_gpu(target->second) || is_fuzz_target(target->second) ||
                        runs(tests, target->second.target))
                << file << " is built into " << target->second.target << ", which ctest does not run";
    }
}

TEST(Inventory, RunsEveryCaseThatIsWritten)
{
    const std::regex a_case(R"re((?:^|\n)\s*(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\))re");
    const auto compiled = compiled_files();
    const auto tests = registered_tests();
    std::size_t looked_at = 0;
    for (const fs::path& file : test_sources()) {
        const auto [first, last] = compiled.equal_range(file.string());
        if (std::all_of(first, last, [](const auto& target) { return needs_gpu(target.second); })) continue;
        const std::string code = without_comments_and_strings(read_text(file));
        for (std::sregex_iterator at(code.begin(), code.end(), a_case), end; at != end; ++at) {
            // The only case in a source for both drivers that runs only on a GPU (#ifndef WARMGRAPH_FAKE_CUDA).
            if (at->str(2) == "TenThousandAreCleanUnderMemcheck") continue;
            ++looked_at;
            // The forms of a name: "Suite.Case", "Instance/Suite.Case/0" (TEST_P), "Suite/0.Case" (TYPED_TEST).
            const std::regex name("[./]" + at->str(1) + "(/[^.]+)?\\." + at->str(2) + "(/.*)?$");
            const bool found = std::ranges::any_of(tests, [&](const Registered& test) {
                const bool is_of_one = std::any_of(
                    first, last, [&](const auto& target) { return test.name.starts_with(target.second.target + "."); });
                return is_of_one && std::regex_search(test.name, name);
            });
            EXPECT_TRUE(found) << file << ": ctest does not run " << at->str(1) << "." << at->str(2);
            EXPECT_FALSE(at->str(1).starts_with("DISABLED_") || at->str(2).starts_with("DISABLED_"))
                << file << ": " << at->str(1) << "." << at->str(2) << " is written but switched off";
        }
    }
    EXPECT_GT(looked_at, 20U) << "hardly any test found";
}

/// Whether the sample is only in Python. Then a file in python/tests names it and runs it.
bool is_python_sample(const std::string& folder)
{
    const auto scripts = files_under(folder, {".py"});
    return !scripts.empty() && files_under(folder, {".cpp", ".c"}).empty();
}

/// Whether several samples share the folder. Its sources are built into their programs.
bool has_no_program(const std::string& folder)
{
    return std::ranges::none_of(files_under(folder, {".cpp", ".c"}), [](const fs::path& file) {
        return read_text(file).find("int main(") != std::string::npos;
    });
}

TEST(Inventory, RunsEveryPythonSample)
{
    std::string tests;
    for (const fs::path& file : files_under("python/tests", {".py"})) tests += read_text(file);
    const auto scripts = files_under("samples/python", {".py"});
    EXPECT_FALSE(scripts.empty());
    for (const fs::path& script : scripts)
        EXPECT_NE(tests.find("'" + script.string() + "'"), std::string::npos) << script << " is run by no test";
}

TEST(Inventory, BuildsAndRunsEverySample)
{
    const auto compiled = compiled_files();
    const auto tests = registered_tests();
    std::set<std::string> samples;
    for (const fs::path& file : files_under("samples", {".cpp", ".c", ".hpp", ".cl", ".py", ".txt"})) {
        if (std::distance(file.begin(), file.end()) > 2)
            samples.insert("samples/" + std::next(file.begin())->string() + "/");
    }
    EXPECT_FALSE(samples.empty());
    std::erase_if(samples, is_python_sample);
    std::erase_if(samples, has_no_program);
    for (const std::string& sample : samples) {
        EXPECT_TRUE(std::ranges::any_of(compiled, [&](const auto& entry) { return entry.first.starts_with(sample); }))
            << sample << " has no source that is built";
        // The sample is run by ctest, or by a test that gets the program's path when it is compiled.
        const std::string folder = std::string(WARMGRAPH_BINARY_DIR) + "/" + sample;
        const std::regex given(R"re(-D\w+=[\\"']*)re" + folder);
        const bool run =
            std::ranges::any_of(
                tests, [&](const Registered& test) { return test.command.find(folder) != std::string::npos; }) ||
            std::ranges::any_of(compiled, [&](const auto& entry) {
                return entry.first.starts_with("tests/") && runs(tests, entry.second.target) &&
                       std::regex_search(entry.second.command, given);
            });
        EXPECT_TRUE(run) << "no test runs a program of " << sample;
    }
}

} // namespace
} // namespace warmgraph::test::inventory_test
