// Promises to users that any device can show: programs give the same results with a cache and without.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "promise_device.hpp"

namespace warmgraph::test::promises_test {
namespace {

class Promises : public DevicePromise {};

TEST_F(Promises, WorkThatAdvancesUndeclaredMemoryAdvancesItOncePerCall)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1), counter = filled(0);
            Function f = cache.wrap("advance", device, spec(program), [&](Recorder& r) {
                add(r, r["y"], r["x"], counter);
                add_scalar(r, counter, 1);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
        },
        HasSubstr("kernel add"));
}

TEST_F(Promises, ADeclaredStateAdvancesOncePerCall)
{
    expect_recorded([this](Cache& cache, CallResults& seen) {
        const Buffer x = words(5), y = filled(-1), counter = filled(0);
        Spec declared = spec(program);
        declared.states = {state("counter", counter)};
        Function f = cache.wrap("advance_declared", device, declared, [&](Recorder& r) {
            add(r, r["y"], r["x"], r["counter"]);
            add_scalar(r, r["counter"], 1);
        });
        for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
    });
}

TEST_F(Promises, AStateThatTheFirstCallInitialisesStaysInitialised)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1), table = filled(0);
            Spec declared = spec(program);
            declared.states = {state("table", table)};
            bool is_done = false;
            Function f = cache.wrap("initialise", device, declared, [&](Recorder& r) {
                if (!is_done) add_scalar(r, r["table"], 100);
                is_done = true;
                add(r, r["y"], r["x"], r["table"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &table});
        },
        HasSubstr("initialises or advances something that a capture does not contain"));
}

/// The captures call the callable again, which counts its runs. Only the result of this call is equal to the native
/// result.
TEST_F(Promises, ARingThatIsKeptOnTheHostGivesItsFirstCallTheNativeResult)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1);
            const std::array<Buffer, 3> ring{filled(1), filled(10), filled(100)};
            Spec declared = spec(program);
            declared.states = {state("first", ring[0]), state("second", ring[1]), state("third", ring[2])};
            constexpr std::array<const char*, 3> k_names{"first", "second", "third"};
            std::size_t next = 0;
            Function f = cache.wrap("ring", device, declared, [&](Recorder& r) {
                copy(r, r[k_names[next]], r["x"]);
                next = (next + 1) % 3;
                add(r, r["y"], r["first"], r["second"]);
                add(r, r["y"], r["y"], r["third"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &ring[0], &ring[1], &ring[2]});
        },
        Not(IsEmpty()), Compared::first_call);
}

TEST_F(Promises, AnOffsetThatIsKeptOnTheHostGivesItsFirstCallTheNativeResult)
{
    for (const std::int32_t period : {2, 1'000'000})
        expect_refused(
            [this, period](Cache& cache, CallResults& seen) {
                const Buffer x = words(5), y = filled(-1);
                std::int32_t offset = 0;
                Function f = cache.wrap("offset" + std::to_string(period), device, spec(program), [&](Recorder& r) {
                    copy(r, r["y"], r["x"]);
                    add_scalar(r, r["y"], offset);
                    offset = (offset + 1) % period;
                });
                for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
            },
            Not(IsEmpty()), Compared::first_call);
}

TEST_F(Promises, AConditionThatOnlySomeValuesMeetIsNoConstant)
{
    for (const bool is_large : {false, true})
        expect_refused(
            [this, is_large](Cache& cache, CallResults& seen) {
                const Buffer x = words(5), y = filled(-1), total = filled(0);
                Spec declared = spec(program);
                declared.states = {state("total", total)};
                declared.scalars = {scalar("position", i32, 0, is_large ? 999'900 : 2000)};
                Function f = cache.wrap(is_large ? "flush_large" : "flush", device, declared, [&](Recorder& r) {
                    const auto position = r.scalar<std::int32_t>("position");
                    copy(r, r["y"], r["x"]);
                    add_scalar(r, r["y"], position);
                    if ((position + 1) % 16 == 0) add(r, r["total"], r["total"], r["y"]);
                });
                for (const int position : {5, 15, 16, 31})
                    call(seen, f, {{"x", x}, {"y", y}, {"position", position}}, {&y, &total});
            },
            HasSubstr("position"));
}

/// BLAS works like this: it does not read C when beta is zero.
TEST_F(Promises, AFactorThatIsZeroChoosesAnotherWayAndIsRefused)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(1);
            Spec declared = spec(program);
            declared.outputs.clear();
            declared.states = {state("y", y)};
            declared.scalars = {scalar("beta", f32, -1, 3)};
            Function f = cache.wrap("blas", device, declared, [&](Recorder& r) {
                if (r.scalar<float>("beta") == 0)
                    copy(r, r["y"], r["x"]);
                else
                    add(r, r["y"], r["x"], r["y"]);
            });
            for (const float beta : {0.5F, 2.0F, 0.0F, -1.0F, 0.0F}) call(seen, f, {{"x", x}, {"beta", beta}}, {&y});
        },
        HasSubstr("beta"));
}

/// When x and y are the same tensor, the function works in place. If y began a little behind x, the function would
/// overwrite x too early.
TEST_F(Promises, WhatWasRecordedInPlaceIsNotReplayedWhereTensorsOverlapOtherwise)
{
    constexpr std::uint64_t k_behind = 256; // distance in bytes
    const CallResults later = expect_native(
        [this](Cache& cache, CallResults& seen) {
            const Buffer memory = words(0, k_count + k_behind / 4);
            const Address start = memory.memory().address;
            Function f = cache.wrap("in_place", device, spec(program), [&](Recorder& r) {
                const Address x = r["x"], y = r["y"];
                if (x != y) {
                    const Address scratch = r.alloc("scratch", k_bytes);
                    r.stream().copy(scratch, x, k_bytes);
                    r.stream().copy(y, scratch, k_bytes);
                }
                add_scalar(r, y, 1);
            });
            for (const std::uint64_t behind :
                 {std::uint64_t{0}, std::uint64_t{0}, k_behind, k_behind, std::uint64_t{0}})
                call(seen, f, {{"x", MemoryRef{start, k_bytes}}, {"y", MemoryRef{start + behind, k_bytes}}}, {&memory});
        },
        ElementsAre("recorded", "replayed", "recorded", "replayed", "replayed"));
    EXPECT_THAT(later.outcomes, Each("replayed"));
}

TEST_F(Promises, AnEnvironmentVariableIsReadAtEveryCall)
{
    constexpr const char* k_mode = "WARMGRAPH_TEST_MODE";
    const auto scene = [this](const std::string& modes) {
        return [this, modes](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1);
            Spec declared = spec(program);
            declared.environment = {k_mode};
            Function f = cache.wrap("mode", device, declared, [&](Recorder& r) {
                copy(r, r["y"], r["x"]);
                add_scalar(r, r["y"], static_cast<std::int32_t>(std::getenv(k_mode)[0]));
            });
            for (const char mode : modes) {
                ::setenv(k_mode, std::string(1, mode).c_str(), 1);
                call(seen, f, {{"x", x}, {"y", y}}, {&y});
            }
        };
    };
    const CallResults later =
        expect_native(scene("ababb"), ElementsAre("recorded", "recorded", "replayed", "replayed", "replayed"));
    EXPECT_THAT(later.outcomes, Each("replayed"));
    for (const std::string mode : {"a", "b"}) // stands for another process, which uses only one mode
        expect_native(scene(mode), ElementsAre("replayed"));
    expect_native(scene("cab"), ElementsAre("recorded", "replayed", "replayed"));
    ::unsetenv(k_mode);
}

TEST_F(Promises, AProgramThatTheSpecDoesNotNameIsRefused)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1);
            Spec declared = spec(program);
            declared.code.clear();
            Function f = cache.wrap("unnamed", device, declared, [&](Recorder& r) { copy(r, r["y"], r["x"]); });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        AllOf(HasSubstr("'promises'"), HasSubstr("not in Spec::code: add it")));
}

// The compiler of the fake driver reads no headers.
#if !defined(WARMGRAPH_PROMISES_ON_CUDA) || !defined(WARMGRAPH_FAKE_CUDA)

class PromisedHeaders : public DevicePromise {
protected:
    static void write(const std::filesystem::path& path, const std::string& text)
    {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream{path, std::ios::trunc} << text;
    }
    /// The function y = x * FACTOR, called four times. The program is made anew for it.
    [[nodiscard]] Scene scaled(const std::string& options)
    {
        return [this, options](Cache& cache, CallResults& seen) {
            const Program with_header = device.program("with_header", k_program_with_header, options);
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("scaled", device, spec(with_header), [&](Recorder& r) {
                r.stream().launch(with_header, "scale", k_launch, r["x"], r["y"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        };
    }
    /// Expects a miss after a header was changed, and a hit on the old entry when the header has its old text again.
    void expect_followed(const std::string& options, const std::filesystem::path& changed)
    {
        const Scene scene = scaled(options);
        const auto recorded = ElementsAre("recorded", "replayed", "replayed", "replayed");
        write(changed, "#define FACTOR 2\n");
        expect_native(scene, recorded);
        write(changed, "#define FACTOR 3\n");
        expect_native(scene, recorded);
        write(changed, "#define FACTOR 2\n");
        expect_native(scene, Each("replayed"));
    }
    std::filesystem::path folder = dir.path() / "headers";
};

TEST_F(PromisedHeaders, AChangedHeaderIsAnotherProgram)
{
    for (const char* const option : k_include_options)
        expect_followed(option + folder.string(), folder / "wg_promised.h");
}

TEST_F(PromisedHeaders, SoIsAChangedHeaderThatAnotherHeaderIncludes)
{
    write(folder / "wg_promised.h", "#include \"detail/wg_factor.h\"\n");
    expect_followed("-I" + folder.string(), folder / "detail" / "wg_factor.h");
}

/// Changes the working folder. The destructor changes it back.
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

#endif

} // namespace
} // namespace warmgraph::test::promises_test
