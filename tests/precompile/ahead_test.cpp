// Tests `warmgraph precompile`: with NVRTC and without a GPU, and with PoCL for the device of this machine. Afterwards
// a service compiles nothing. Errors in a manifest are reported before anything is compiled.
#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include "facade_fixture.hpp"
#include "lacking.hpp"
#include "precompile/manifest.hpp"
#include "warmgraph/backends/built.hpp"

namespace warmgraph::test::ahead_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct CommandEnd {
    int status = -1;
    std::string out, error;
    [[nodiscard]] json document() const { return json::parse(out); }
};

class AheadTest : public FacadeTest {
protected:
    void write(const std::string& name, const std::string& text) const
    {
        fs::create_directories((dir.path() / name).parent_path());
        std::ofstream(dir.path() / name) << text;
    }
    [[nodiscard]] std::string text_of(const std::string& name) const
    {
        const auto bytes = file_bytes(dir.path() / name);
        return {bytes.begin(), bytes.end()};
    }
    /// Runs the command with an empty PoCL cache, as on another machine.
    CommandEnd command(const std::string& arguments) const
    {
        const std::string line = fmt::format(
            "cd '{0}' && POCL_CACHE_DIR='{0}/pocl' '{1}' --cache-dir cache {2} >out.txt 2>error.txt </dev/null",
            dir.path().string(), WARMGRAPH_COMMAND, arguments);
        fs::create_directories(dir.path() / "pocl");
        const int status = std::system(line.c_str()); // NOLINT: a test's own words
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000, text_of("out.txt"), text_of("error.txt")};
    }
    CommandEnd precompile(const std::string& arguments) const { return command("precompile " + arguments); }
    CommandEnd with_manifest(const json& manifest, const std::string& more = "--json") const
    {
        write("programs.json", manifest.dump());
        return precompile("programs.json " + more);
    }
    static bool has_nvrtc() { return backends::make_ahead_compiler("cuda", "sm_90").has_value(); }
};

TEST_F(AheadTest, AServiceThatCompilesNothingRecordsFromTheFolder)
{
    write("src/small.cl", std::string("#include \"one.h\"\n") + k_small_kernels);
    write("src/headers/one.h", "#define ONE 1\n");
    const json manifest{{"programs",
                         {{{"name", "small"},
                           {"backend", "opencl"},
                           {"source", "src/small.cl"},
                           {"options", "-D TWO=2"},
                           {"include", {"src/headers"}}}}}};
    const CommandEnd first = with_manifest(manifest);
    ASSERT_EQ(first.status, 0) << first.out << first.error;
    EXPECT_EQ(first.document()["compiled"], 1);
    EXPECT_EQ(with_manifest(manifest).document()["there"], 1);

    fs::rename(dir.path() / "src/headers", dir.path() / "moved");
    const Program code =
        device.program("other name", text_of("src/small.cl"), "-D TWO=2 -I " + (dir.path() / "moved").string());
    Cache cache{options(Policy::no_compile)};
    Spec spec = vector_spec();
    spec.code = {code};
    Function f = cache.wrap("f", device, spec,
                            [code](Recorder& r) { r.stream().launch(code, "add_one", k_launch, r["x"], r["y"]); });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded) << f.report().reason;
    EXPECT_EQ(read(m_y), read(floats(1)));
    EXPECT_EQ(cache.statistics().of(ArtifactKind::compiled).hits, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::compiled).made, 0U);
}

TEST_F(AheadTest, TheTagOfTheEnvironmentIsTheServices)
{
    const json manifest{{"programs", {{{"name", "small"}, {"backend", "opencl"}, {"text", k_small_kernels}}}}};
    ::setenv("WARMGRAPH_CACHE_KEY_TAG", "blue", 1);
    const CommandEnd blue = with_manifest(manifest);
    ::setenv("WARMGRAPH_CACHE_KEY_TAG", "\n", 1);
    const CommandEnd wrong = with_manifest(manifest);
    ::unsetenv("WARMGRAPH_CACHE_KEY_TAG");
    EXPECT_EQ(blue.document()["compiled"], 1);
    EXPECT_THAT(wrong.error, HasSubstr("printable ASCII"));
    const auto loaded = [&](const std::string& tag) {
        const Program code = device.program("small", k_small_kernels);
        CacheOptions how = options(Policy::read_only);
        how.cache_key_tag = tag;
        Cache cache{how};
        Spec spec = vector_spec();
        spec.code = {code};
        Function f = cache.wrap("f", device, spec,
                                [code](Recorder& r) { r.stream().launch(code, "add_one", k_launch, r["x"], r["y"]); });
        f({{"x", m_x}, {"y", m_y}});
        return cache.statistics().of(ArtifactKind::compiled).hits;
    };
    EXPECT_EQ(loaded(""), 0U);
    EXPECT_EQ(loaded("blue"), 1U);
}

TEST_F(AheadTest, TheCommandKnowsCompiledPrograms)
{
    write("headers/one.h", "#define ONE 1\n");
    const json manifest{{"programs",
                         {{{"name", "small"},
                           {"backend", "opencl"},
                           {"text", "#include \"one.h\"\n__kernel void none() {}\n"},
                           {"include", {"headers"}}}}}};
    ASSERT_EQ(with_manifest(manifest).status, 0);
    EXPECT_THAT(command("ls").out, HasSubstr("1 compiled program ("));
    EXPECT_EQ(json::parse(command("ls --json").out)["compiled"], 1);
    EXPECT_THAT(command("stats").out, testing::ContainsRegex("\ncompiled +1 +"));
    EXPECT_EQ(json::parse(command("stats --json").out)["kinds"]["compiled"]["files"], 1);
    EXPECT_THAT(command("stats --prometheus").out, HasSubstr("warmgraph_kind_files{kind=\"compiled\"} 1\n"));
    EXPECT_EQ(command("check").status, 0);

    write("headers/one.h", "#define ONE 2\n");
    {
        const Program code = device.program("small", "#include \"one.h\"\n__kernel void none() {}\n",
                                            "-I " + (dir.path() / "headers").string());
        Cache cache{options(Policy::no_compile)};
        Function f = cache.wrap("f", device, vector_spec(),
                                [code](Recorder& r) { r.stream().launch(code, "none", k_launch, r["x"], r["y"]); });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        EXPECT_EQ(thrown_by([&] { f({{"x", x}, {"y", y}}); })->code(), ErrorCode::miss_forbidden);
    }
    const CommandEnd explained = command("explain small --kind compiled");
    EXPECT_EQ(explained.status, 1);
    EXPECT_THAT(explained.out, AllOf(HasSubstr("the last miss of small"), HasSubstr("(no_compile, process "),
                                     HasSubstr("header one.h"), HasSubstr("thrown")));
    const json document = json::parse(command("explain small --kind compiled --json").out);
    EXPECT_EQ(document["program"], "small");
    EXPECT_EQ(document["mismatches"][0]["fact"], "header one.h");
    EXPECT_THAT(command("explain smal --kind compiled").error, HasSubstr("did you mean 'small'?"));
    EXPECT_THAT(command("clear --kind compiled").out, HasSubstr(", 1 compiled program ("));
    EXPECT_TRUE(files(".compiled").empty());
}

TEST_F(AheadTest, NvrtcCompilesForArchitecturesThatAreNotHere)
{
    if (!has_nvrtc()) WARMGRAPH_SKIP_LACKING("NVRTC");
    write("add.cu", "#include \"one.h\"\nextern \"C\" __global__ void add(int* x) { *x += ONE; }\n");
    write("headers/one.h", "#define ONE 1\n");
    const json manifest{
        {"arch", {"sm_80", "sm_90a"}},
        {"programs",
         {{{"name", "add"}, {"backend", "cuda"}, {"source", "add.cu"}, {"include", {"headers"}}},
          {{"name", "one"}, {"backend", "cuda"}, {"text", "__global__ void one() {}"}, {"arch", {"sm_120"}}}}}};
    const json first = with_manifest(manifest).document();
    EXPECT_EQ(first["compiled"], 3);
    EXPECT_EQ(first["programs"][1]["target"], "sm_90a");
    EXPECT_EQ(first["programs"][2]["target"], "sm_120");
    EXPECT_EQ(files(".compiled").size(), 3U);
    const json again = with_manifest(manifest).document();
    EXPECT_EQ(again["there"], 3);
    EXPECT_EQ(with_manifest(manifest, "--json --arch sm_80").document()["compiled"], 1) << "the second program's";
    write("headers/one.h", "#define ONE 2\n");
    EXPECT_EQ(with_manifest(manifest).document()["compiled"], 2) << "a header changed";
}

TEST_F(AheadTest, WhatDoesNotCompileIsNamedAndTheRestIsDone)
{
    if (!has_nvrtc()) WARMGRAPH_SKIP_LACKING("NVRTC");
    const json manifest{{"arch", {"sm_90"}},
                        {"programs",
                         {{{"name", "broken"}, {"backend", "cuda"}, {"text", "no code"}},
                          {{"name", "odd"}, {"backend", "cuda"}, {"text", "int x;"}, {"options", "--no-such-option"}},
                          {{"name", "whole"}, {"backend", "cuda"}, {"text", "__global__ void whole() {}"}}}}};
    const CommandEnd end = with_manifest(manifest);
    EXPECT_EQ(end.status, 1);
    const json document = end.document();
    EXPECT_EQ(document["compiled"], 1);
    EXPECT_EQ(document["failed"], 2);
    EXPECT_EQ(document["programs"][0]["error"]["code"], "compile_failed");
    EXPECT_THAT(document["programs"][1]["error"]["message"].get<std::string>(), HasSubstr("--no-such-option"));
    EXPECT_THAT(with_manifest(manifest, "").out, HasSubstr("0 compiled, 1 there already, 2 failed"));
}

TEST_F(AheadTest, AnArchitectureThatNobodyKnowsIsRefused)
{
    if (!has_nvrtc()) WARMGRAPH_SKIP_LACKING("NVRTC");
    const json manifest{{"programs", {{{"name", "a"}, {"backend", "cuda"}, {"text", "int x;"}}}}};
    const CommandEnd unknown = with_manifest(manifest, "--arch sm_12");
    EXPECT_EQ(unknown.status, 2);
    EXPECT_THAT(unknown.error, AllOf(HasSubstr("'sm_12'"), HasSubstr("sm_90")));
    EXPECT_THAT(with_manifest(manifest, "").error, HasSubstr("compiled for no architecture: give --arch"));
    EXPECT_FALSE(fs::exists(dir.path() / "cache"));
}

TEST_F(AheadTest, FilesThatAreNotThereAreNamed)
{
    EXPECT_THAT(precompile("missing.json").error, HasSubstr("missing.json does not exist"));
    const auto error = [&](const char* member, const json& value) {
        json item{{"name", "a"}, {"backend", "opencl"}, {"text", "x"}};
        if (std::string_view(member) == "source") item.erase("text");
        item[member] = value;
        return with_manifest({{"programs", {item}}}, "").error;
    };
    EXPECT_THAT(error("source", "none.cl"), AllOf(HasSubstr("program 'a'"), HasSubstr("none.cl does not exist")));
    EXPECT_THAT(error("source", "."), HasSubstr("is not a regular file"));
    EXPECT_THAT(error("include", {"none"}), HasSubstr("there is no folder"));
}

TEST(ManifestFile, SaysWhatIsWrongAndWhatWasExpected)
{
    const auto error = [](const std::string& text) {
        const auto manifest = tool::parse_manifest(text);
        EXPECT_FALSE(manifest.has_value()) << text;
        if (manifest) return std::string();
        EXPECT_EQ(manifest.error().code, ErrorCode::invalid_argument);
        return manifest.error().message;
    };
    const auto program = [&](const std::string& members) {
        return error(R"({"programs": [{"name": "a", "backend": "cuda", "text": "x", )" + members + "}]}");
    };
    EXPECT_THAT(error(""), HasSubstr("not JSON"));
    EXPECT_THAT(error("{"), HasSubstr("not JSON"));
    EXPECT_THAT(error("[1e999]"), HasSubstr("too large"));
    EXPECT_THAT(error("[]"), HasSubstr("the manifest: it is array, expected an object"));
    EXPECT_THAT(error("{}"), HasSubstr("'programs' is missing"));
    EXPECT_THAT(error(R"({"programs": []})"), HasSubstr("0 items, expected 1 to 10000"));
    EXPECT_THAT(error(R"({"program": []})"),
                HasSubstr("unknown member 'program', expected programs, arch; did you mean 'programs'?"));
    EXPECT_THAT(error(R"({"arch": ["sm90"], "programs": []})"), HasSubstr("'sm90' is not an architecture"));
    EXPECT_THAT(error(R"({"programs": [7]})"), HasSubstr("program 1: it is number"));
    EXPECT_THAT(program(R"("option": "-O3")"), HasSubstr("did you mean 'options'?"));
    EXPECT_THAT(program(R"("options": ["-O3"])"), HasSubstr("'options' is array, expected a text"));
    EXPECT_THAT(program(R"("source": "a.cu")"), HasSubstr("either 'source', a file, or 'text'"));
    EXPECT_THAT(program(R"("arch": ["compute_90"])"), HasSubstr("'compute_90' is not an architecture"));
    EXPECT_THAT(program(R"("include": ["a b"])"), HasSubstr("blanks or quotes"));
    EXPECT_THAT(program(R"("backend": "cude")"), HasSubstr("did you mean 'cuda'?"));
    EXPECT_THAT(error(R"({"programs": [{"backend": "cuda", "text": "x"}]})"), HasSubstr("'name' is missing"));
    EXPECT_THAT(error(R"({"programs": [{"name": "a", "backend": "opencl", "text": "x", "arch": ["sm_80"]}]})"),
                HasSubstr("'arch' is for backend cuda"));
    EXPECT_THAT(error(R"({"programs": [{"name": "a", "backend": "cuda", "text": "x"},
                                       {"name": "a", "backend": "cuda", "text": "y"}]})"),
                HasSubstr("two programs have the name 'a'"));
    EXPECT_THAT(error(std::string(tool::k_manifest_cap + 1, ' ')), HasSubstr("expected at most"));
}

} // namespace
} // namespace warmgraph::test::ahead_test
