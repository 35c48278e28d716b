// What an entry depends on beside its arguments: the environment, programs, headers.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "promise_fixture.hpp"

namespace warmgraph::test::facts_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
extern "C" __global__ void add(const int* x, int amount, int* y) { int i = INDEX; y[i] = x[i] + amount; })";

class PromisedFacts : public GpuPromise {
protected:
    Program program = device.program("facts", k_source);
};

TEST_F(PromisedFacts, AnEnvironmentVariableIsReadAtEveryCall)
{
    constexpr const char* k_mode = "WARMGRAPH_TEST_MODE";
    const auto scene = [this](const std::string& modes) {
        return [this, modes](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1);
            Spec declared = spec(program);
            declared.environment = {k_mode};
            Function f = cache.wrap("mode", device, declared, [&](Recorder& r) {
                const auto amount = static_cast<std::int32_t>(std::getenv(k_mode)[0]);
                r.stream().launch(program, "add", k_launch, r["x"], amount, r["y"]);
            });
            for (const char mode : modes) {
                ::setenv(k_mode, std::string(1, mode).c_str(), 1);
                call(seen, f, {{"x", x}, {"y", y}}, {&y});
            }
        };
    };
    const Seen later =
        expect_native(scene("ababb"), ElementsAre("recorded", "recorded", "replayed", "replayed", "replayed"));
    EXPECT_THAT(later.outcomes, testing::Each("replayed"));
    for (const std::string mode : {"a", "b"}) // another process, with one mode alone
        expect_native(scene(mode), ElementsAre("replayed"));
    expect_native(scene("cab"), ElementsAre("recorded", "replayed", "replayed"));
    ::unsetenv(k_mode);
}

TEST_F(PromisedFacts, AProgramThatTheSpecDoesNotNameIsRefused)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("unnamed", device, plain_spec(), [&](Recorder& r) {
                r.stream().launch(program, "add", k_launch, r["x"], std::int32_t{2}, r["y"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        testing::AllOf(HasSubstr("'facts'"), HasSubstr("not in Spec::code")));
}

class PromisedHeaders : public PromisedFacts {
protected:
    static void write(const std::filesystem::path& path, const std::string& text)
    {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream{path, std::ios::trunc} << text;
    }
    /// y = x * FACTOR, called four times with a program made now.
    [[nodiscard]] Scene scaled(const std::string& options)
    {
        return [this, options](Cache& cache, Seen& seen) {
            const Program with_header = device.program("with_header", R"(
#include "wg_promised.h"
extern "C" __global__ void scale(const int* x, int* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i] * FACTOR; })",
                                                       options);
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("scaled", device, spec(with_header), [&](Recorder& r) {
                r.stream().launch(with_header, "scale", k_launch, r["x"], r["y"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        };
    }
    /// A change is a miss, and the old text finds its old entry.
    void expect_followed(const std::string& options, const std::filesystem::path& changed)
    {
        const Scene scene = scaled(options);
        const auto recorded = ElementsAre("recorded", "replayed", "replayed", "replayed");
        write(changed, "#define FACTOR 2\n");
        expect_native(scene, recorded);
        write(changed, "#define FACTOR 3\n");
        expect_native(scene, recorded);
        write(changed, "#define FACTOR 2\n");
        expect_native(scene, testing::Each("replayed"));
    }
    std::filesystem::path folder = dir.path() / "headers";
};

TEST_F(PromisedHeaders, AChangedHeaderOfAnIncludeFolderIsAnotherProgram)
{
    expect_followed("-I" + folder.string(), folder / "wg_promised.h");
}

TEST_F(PromisedHeaders, SoIsOneOfAFolderThatIsGivenByTheOptionsLongName)
{
    expect_followed("--include-path=" + folder.string(), folder / "wg_promised.h");
}

TEST_F(PromisedHeaders, AChangedHeaderThatAnotherHeaderIncludesIsAnotherProgram)
{
    write(folder / "wg_promised.h", "#include \"detail/wg_factor.h\"\n");
    expect_followed("-I" + folder.string(), folder / "detail" / "wg_factor.h");
}

/// While it lives.
class WorkingFolder {
public:
    explicit WorkingFolder(const std::filesystem::path& folder) { std::filesystem::current_path(folder); }
    WorkingFolder(const WorkingFolder&) = delete;
    WorkingFolder& operator=(const WorkingFolder&) = delete;
    ~WorkingFolder() { std::filesystem::current_path(m_before); }

private:
    std::filesystem::path m_before = std::filesystem::current_path();
};

TEST_F(PromisedHeaders, AChangedHeaderInTheWorkingFolderIsAnotherProgram)
{
    std::filesystem::create_directories(folder);
    const WorkingFolder working{folder};
    expect_followed("", folder / "wg_promised.h");
}

} // namespace
} // namespace warmgraph::test::facts_test
