// Every driver call must go through the wrapper that checks its status and keeps its text.
#include <regex>

#include <gtest/gtest.h>

#include "repository.hpp"

namespace warmgraph::test::driver_calls_test {
namespace {

namespace fs = std::filesystem;

// The sources except those in bench/ and tests/, which compare results with direct driver calls.
std::vector<fs::path> product_sources()
{
    std::vector<fs::path> sources;
    for (const char* folder : {"base", "cachefmt", "guards", "store", "autotune", "backends", "replay", "capture",
                               "ranks", "facade", "c", "tool", "samples"}) {
        for (const fs::path& file : files_under(folder, {".cpp", ".hpp", ".h", ".c"})) sources.push_back(file);
    }
    return sources;
}

void expect_no_call(const fs::path& file, const std::regex& call, std::string_view wrapper)
{
    const std::string code = without_comments_and_strings(read_text(file));
    for (std::sregex_iterator at(code.begin(), code.end(), call), end; at != end; ++at) {
        ADD_FAILURE() << file << ":" << line_of(code, static_cast<std::size_t>(at->position())) << " calls "
                      << at->str() << "...) itself; expected " << wrapper;
    }
}

TEST(DriverCalls, AreNeverMadeOutsideTheWrapper)
{
    const std::regex call(R"re(\bcl[A-Z][A-Za-z0-9]*\s*\()re");
    for (const fs::path& file : product_sources()) {
        if (file.parent_path() == "backends/opencl/src" && file.stem() == "driver") continue;
        expect_no_call(file, call, "call(), create() or query() of backends/opencl/src/driver.hpp");
    }
}

TEST(DriverCalls, OfCudaAreNeverMadeOutsideTheWrapper)
{
    const std::regex call(R"re(\bcu[A-Z][A-Za-z0-9]*\s*\()re");
    for (const fs::path& file : product_sources()) {
        // core.hpp makes a context current for a scope. If that fails, the next call reports the error.
        const bool is_wrapper = file.parent_path() == "backends/cuda/src/device" &&
                                (file.stem() == "driver" || file.filename() == "core.hpp");
        if (!is_wrapper)
            expect_no_call(file, call, "Driver::call() or status() of backends/cuda/src/device/driver.hpp");
    }
}

TEST(DriverCalls, AreWrappedUnderTheirOwnName)
{
    const std::regex wrapped(R"re("(cl[A-Z][A-Za-z0-9]*)"\s*,\s*driver\(\)\.(cl[A-Z][A-Za-z0-9]*))re");
    std::size_t looked_at = 0;
    for (const fs::path& file : files_under("backends/opencl", {".cpp", ".hpp"})) {
        const std::string code = read_text(file);
        for (std::sregex_iterator at(code.begin(), code.end(), wrapped), end; at != end; ++at) {
            ++looked_at;
            EXPECT_EQ(at->str(1), at->str(2)) << file << ":" << line_of(code, static_cast<std::size_t>(at->position()));
        }
    }
    EXPECT_GT(looked_at, 10U) << "the wrapper's calls look different from what this test expects";
}

TEST(DriverCalls, OfCudaAreWrappedUnderTheirOwnName)
{
    const std::regex wrapped(R"re("(cu[A-Z][A-Za-z0-9]*)"\s*,\s*(?:[A-Za-z_]+(?:\.|->))+(cu[A-Z][A-Za-z0-9]*))re");
    std::size_t looked_at = 0;
    for (const fs::path& file : files_under("backends/cuda", {".cpp", ".hpp"})) {
        const std::string code = read_text(file);
        for (std::sregex_iterator at(code.begin(), code.end(), wrapped), end; at != end; ++at) {
            ++looked_at;
            EXPECT_EQ(at->str(1), at->str(2)) << file << ":" << line_of(code, static_cast<std::size_t>(at->position()));
        }
    }
    EXPECT_GT(looked_at, 40U) << "the wrapper's calls look different from what this test expects";
}

TEST(DriverCalls, NeedNoDriverHeaderOutsideItsBackend)
{
    const std::regex cuda(R"re((cuda|nvrtc|cupti[A-Za-z_]*|cuda_runtime[A-Za-z_]*)\.h)re");
    for (const fs::path& file : product_sources()) {
        for (const Include& include : includes_of(read_text(file))) {
            EXPECT_FALSE(include.path.starts_with("CL/") && !file.string().starts_with("backends/opencl/"))
                << file << ":" << include.line << " includes " << include.path;
            EXPECT_FALSE(std::regex_match(include.path, cuda) && !file.string().starts_with("backends/cuda/"))
                << file << ":" << include.line << " includes " << include.path;
        }
    }
}

} // namespace
} // namespace warmgraph::test::driver_calls_test
