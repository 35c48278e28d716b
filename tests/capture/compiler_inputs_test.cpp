// Inputs of a compiler other than the source: headers that it finds by name, and flags from the environment. If they
// change, an entry must not be replayed.
#include "facade_fixture.hpp"

namespace warmgraph::test::compiler_inputs_test {
namespace {

constexpr const char* k_scale = "__kernel void scale(__global const float* x, __global float* y) { size_t i = "
                                "get_global_id(0); y[i] = x[i] * FACTOR; }\n";
constexpr const char* k_flags = "POCL_EXTRA_BUILD_FLAGS";

class CompilerInputs : public FacadeTest {
protected:
    ~CompilerInputs() override { set_flags(nullptr); }

    void write(const std::string& name, const std::string& text) const
    {
        const auto path = dir.path() / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    [[nodiscard]] std::string in(const std::string& folder) const { return (dir.path() / folder).string(); }
    void set_flags(const char* flags) const
    {
        device.synchronize(); // the driver's threads must not read the environment while it changes
        if (flags != nullptr)
            ::setenv(k_flags, flags, 1);
        else
            ::unsetenv(k_flags);
    }
    /// Returns the value that a new process with this source and these options computes from 21. Also sets `outcome`.
    float run(const std::string& source, const std::string& flags, const std::string& version = "")
    {
        Cache cache{options()};
        const Program code = device.program("scale", source, flags);
        Spec spec = vector_spec();
        spec.code = {code};
        spec.version = version;
        Function f = cache.wrap("scale", device, spec,
                                [&](Recorder& r) { r.stream().launch(code, "scale", k_launch, r["x"], r["y"]); });
        const Buffer x = device.upload<float>(std::vector<float>(k_count, 21.0F)), y = device.allocate(k_count * 4);
        outcome = f({{"x", x}, {"y", y}});
        reason = f.report().reason;
        return read(y).front();
    }
    Outcome outcome{};
    std::string reason{};
};

TEST_F(CompilerInputs, TheOrderOfFoldersDecides)
{
    write("a/f.h", "#define FACTOR 7.0f\n");
    write("b/f.h", "#define FACTOR 2.0f\n");
    const std::string source = std::string("#include \"f.h\"\n") + k_scale;
    const std::string forward = "-I " + in("a") + " -I " + in("b"), backward = "-I " + in("b") + " -I " + in("a");
    EXPECT_EQ(run(source, forward), 147.0F);
    EXPECT_EQ(run(source, backward), 42.0F) << "the compiled program that is kept is another one too";
    EXPECT_EQ(outcome, Outcome::recorded);
    EXPECT_THAT(reason, HasSubstr("program.scale"));
    EXPECT_EQ(run(source, forward), 147.0F);
    EXPECT_EQ(outcome, Outcome::replayed);
    std::filesystem::rename(dir.path() / "a", dir.path() / "c");
    EXPECT_EQ(run(source, "-I " + in("c") + " -I " + in("b")), 147.0F);
    EXPECT_EQ(outcome, Outcome::replayed) << "a folder that moved";
}

TEST_F(CompilerInputs, WhatOnlyTheCompilerCanNameIsNotPublished)
{
    write("m.h", "#define FACTOR 2.0f\n");
    for (const std::string first :
         {"#define NAME \"m.h\"\n#include NAME\n", "#define STR(x) #x\n#define X(x) STR(x)\n#include X(m.h)\n"}) {
        EXPECT_EQ(run(first + k_scale, "-I " + in("")), 42.0F);
        EXPECT_THAT(reason, HasSubstr("only the compiler can resolve the include of '#include "));
        EXPECT_THAT(reason, HasSubstr("Spec::version"));
        EXPECT_TRUE(entries().empty());
    }
    EXPECT_EQ(run(std::string("#include NAME\n") + k_scale, "-I " + in("") + " -DNAME=<m.h>", "1"), 42.0F);
    EXPECT_EQ(entries().size(), 1U) << "the caller answers for it";
    write("m.h", "#define FACTOR 13.0f\n");
    EXPECT_EQ(run(std::string("#define NAME \"m.h\"\n#include NAME\n") + k_scale, "-I " + in("")), 273.0F);
}

TEST_F(CompilerInputs, AnOddlySpelledIncludeCounts)
{
    for (const char* hash : {"%:", "?\?="}) {
        write("m.h", "#define FACTOR 2.0f\n");
        const std::string source = std::string(hash) + "include \"m.h\"\n" + k_scale;
        EXPECT_EQ(run(source, "-I " + in("")), 42.0F) << hash;
        write("m.h", "#define FACTOR 13.0f\n");
        EXPECT_EQ(run(source, "-I " + in("")), 273.0F) << hash;
    }
}

TEST_F(CompilerInputs, FlagsFromTheEnvironmentCount)
{
    const std::string source =
        std::string("#ifdef FOO\n#define FACTOR 3.0f\n#else\n#define FACTOR 2.0f\n#endif\n") + k_scale;
    EXPECT_EQ(run(source, ""), 42.0F);
    set_flags("-DFOO");
    EXPECT_EQ(run(source, ""), 63.0F);
    EXPECT_EQ(outcome, Outcome::recorded);
    EXPECT_THAT(reason, HasSubstr("env.POCL_EXTRA_BUILD_FLAGS"));
    EXPECT_EQ(run(source, ""), 63.0F);
    EXPECT_EQ(outcome, Outcome::replayed);
    set_flags(nullptr);
    EXPECT_EQ(run(source, ""), 42.0F);
    EXPECT_EQ(outcome, Outcome::replayed);
}

TEST_F(CompilerInputs, FlagsThatNameFilesAreNotKnown)
{
    write("m.h", "#define FACTOR 2.0f\n");
    set_flags(("-I " + in("")).c_str());
    EXPECT_EQ(run(std::string("#include <m.h>\n") + k_scale, ""), 42.0F);
    EXPECT_TRUE(entries().empty());
    EXPECT_THAT(reason, HasSubstr("it names files that only the compiler reads"));
}

} // namespace
} // namespace warmgraph::test::compiler_inputs_test
