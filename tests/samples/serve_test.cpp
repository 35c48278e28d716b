// Runs samples/serve on OpenCL with two small functions instead of a language model. Their states are described as in
// PyTorch's entries.
#include <array>
#include <cstdio>
#include <functional>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "facade_fixture.hpp"
#include "generation.hpp"
#include "safetensors.hpp"
#include "start.hpp"
#include "states.hpp"

namespace warmgraph::test::serve_test {
namespace {

using nlohmann::json;
using serve::Tokens;

constexpr std::int64_t k_vocabulary = 16, k_frequency = 3;

// Each next token depends on all earlier tokens: both kernels write tokens to the state `seen`.
constexpr const char* k_model = R"(
__kernel void prompt(__global const long* tokens, __global const float* table, __global const long* frequency,
                     __global long* seen, __global long* next, int count)
{
    for (int i = 0; i < count; ++i) seen[0] += tokens[i] * frequency[0] + 1;
    next[0] = ((long)table[tokens[count - 1]] + seen[0]) % 16;
}
__kernel void decode(__global const long* token, __global const long* position, __global const float* table,
                     __global const long* frequency, __global long* seen, __global long* next)
{
    seen[0] += token[0] * frequency[0] + position[0];
    next[0] = ((long)table[token[0]] + seen[0]) % 16;
}
)";

json metadata()
{
    const json table = {"embed.weight", 0, "f32", {k_vocabulary}, {1}},
               tied = {"head.weight", 0, "f32", {k_vocabulary}, {1}};
    return {{"warmgraph.torch", 1},
            {"written", {"seen"}},
            {"aliases", {{"embed.weight", {table, tied}}}},
            {"contents", {{"frequency", "AwAAAAAAAAA="}}}}; // the eight bytes of k_frequency
}

std::vector<float> table()
{
    std::vector<float> values(k_vocabulary);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7 + 5) % 16);
    return values;
}

Tokens expected(const Tokens& prompt, std::size_t count)
{
    const auto values = table();
    std::int64_t seen = 0;
    for (const std::int64_t token : prompt) seen += token * k_frequency + 1;
    const auto next = [&](std::int64_t token) {
        return (static_cast<std::int64_t>(values[static_cast<std::size_t>(token)]) + seen) % k_vocabulary;
    };
    Tokens tokens{next(prompt.back())};
    for (auto position = static_cast<std::int64_t>(prompt.size()); tokens.size() < count; ++position) {
        seen += tokens.back() * k_frequency + position;
        tokens.push_back(next(tokens.back()));
    }
    return tokens;
}

std::vector<std::byte> file_of(const std::string& header, std::span<const std::byte> data)
{
    std::vector<std::byte> content;
    for (unsigned i = 0; i < 8; ++i) content.push_back(static_cast<std::byte>(header.size() >> (8 * i) & 0xffU));
    std::ranges::copy(std::as_bytes(std::span{header}), std::back_inserter(content));
    std::ranges::copy(data, std::back_inserter(content));
    return content;
}

std::vector<std::byte> safetensors(const std::string& name, const std::vector<float>& values)
{
    const std::string header =
        json{{name,
              {{"dtype", "F32"}, {"shape", {values.size()}}, {"data_offsets", {0, values.size() * sizeof(float)}}}}}
            .dump();
    return file_of(header, std::as_bytes(std::span{values}));
}

class ServeTest : public FacadeTest {
protected:
    void SetUp() override
    {
        record("prompt", {input("tokens", i64, {1, 3})}, [this](Recorder& r) {
            r.stream().launch(model, "prompt", k_one, r["tokens"], r["embed.weight"], r["frequency"], r["seen"],
                              r["result0"], std::int32_t{3});
        });
        record("decode", {input("token", i64, {1, 1}), input("position", i64, {1})}, [this](Recorder& r) {
            r.stream().launch(model, "decode", k_one, r["token"], r["position"], r["embed.weight"], r["frequency"],
                              r["seen"], r["result0"]);
        });
        write_weights("head.weight", table());
        write_golden(golden.tokens);
    }
    void record(const std::string& name, const std::vector<TensorDecl>& inputs, const Callable& callable)
    {
        const Buffer weights_here = device.upload<float>(table()), frequency = numbers({k_frequency}),
                     seen = numbers({0});
        Spec spec;
        spec.inputs = inputs;
        spec.outputs = {output("result0", i64, {1, 1})};
        spec.states = {weights("embed.weight", weights_here, f32, {k_vocabulary}),
                       weights("frequency", frequency, i64, {1}), state("seen", seen, i64, {1})};
        spec.code = {model};
        spec.metadata = metadata().dump();
        Cache cache{served()};
        Function function = cache.wrap(name, device, spec, callable);
        std::vector<Buffer> buffers;
        std::vector<Arg> args;
        for (const TensorDecl& one : inputs) buffers.push_back(numbers(Tokens(one.sizes.back() == 3 ? 3 : 1, 1)));
        buffers.push_back(numbers({0}));
        for (std::size_t i = 0; i < inputs.size(); ++i) args.emplace_back(inputs[i].name, buffers[i]);
        args.emplace_back("result0", buffers.back());
        ASSERT_EQ(function.call(args), Outcome::recorded) << function.report().reason;
        device.synchronize();
    }
    [[nodiscard]] Buffer numbers(const Tokens& values) const { return device.upload<std::int64_t>(values); }
    [[nodiscard]] CacheOptions served() const
    {
        CacheOptions result = options();
        result.shapes = ShapeMode::dynamic;
        return result;
    }
    void write_weights(const std::string& name, const std::vector<float>& values) const
    {
        const auto content = safetensors(name, values);
        std::ofstream{dir.path() / "model.safetensors", std::ios::binary}.write(
            reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    }
    void write_golden(const Tokens& tokens) const
    {
        std::ofstream{dir.path() / "golden.json"}
            << json{{"model", "toy"}, {"prompt", golden.prompt}, {"tokens", tokens}, {"first_token_ms", 1234.4}};
    }
    [[nodiscard]] serve::Generated generate(const std::vector<std::byte>& weights_file) const
    {
        const auto file = samples::Safetensors::parse(weights_file);
        Cache cache{served()};
        serve::States states{device, file};
        return serve::generate(cache, device, states, golden);
    }
    /// Runs the program. Returns its exit code and its output.
    [[nodiscard]] std::pair<int, std::string> run(const std::string& device_id = "opencl") const
    {
        const std::string command = std::string("WARMGRAPH_POLICY=require_hit " SERVE_BINARY " ") +
                                    dir.path().string() + " --device " + device_id + " 2>&1";
        FILE* const pipe = ::popen(command.c_str(), "r");
        std::string text;
        std::array<char, 4096> part{};
        for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
        const int status = ::pclose(pipe);
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
    }

    static constexpr Launch k_one{.grid = {1, 1, 1}, .block = {1, 1, 1}};
    Program model = device.program("model", k_model);
    serve::Golden golden{"toy", {4, 9, 2}, expected({4, 9, 2}, 6), 0};
};

void expect_refused(const std::string& text, const std::function<void()>& f)
{
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << text;
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr(text));
    }
}

TEST_F(ServeTest, GeneratesWhatTheFunctionsGenerate)
{
    const double before = serve::since_start_ms();
    const serve::Generated generated = generate(safetensors("head.weight", table()));
    EXPECT_EQ(generated.tokens, golden.tokens);
    EXPECT_GE(generated.first_token_ms, before);
    EXPECT_EQ(generate(safetensors("embed.weight", table())).tokens, golden.tokens) << "by its other name";
}

TEST_F(ServeTest, AStateIsAskedForByNameAndLooked)
{
    expect_refused("no tensor 'embed.weight'", [&] { static_cast<void>(generate(safetensors("other", table()))); });
    expect_refused("'head.weight' is F32 [3] in the file, expected f32 [16]",
                   [&] { static_cast<void>(generate(safetensors("head.weight", {1, 2, 3}))); });
}

TEST_F(ServeTest, AStateIsMadeOnceAndOneOfNoDimensionsHasOneElement)
{
    const std::array<std::int64_t, 1> value{7};
    const auto file = samples::Safetensors::parse(
        file_of(R"({"n": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}})", std::as_bytes(std::span{value})));
    serve::States states{device, file};
    const MemoryRef made = states.of(weights("n", {{}, 8}, i64, {1}), {});
    EXPECT_EQ(made.size, 8U);
    EXPECT_EQ(states.of(weights("n", {{}, 8}, i64, {1}), {}), made);
    expect_refused("one of 8 bytes and one of 16 bytes",
                   [&] { static_cast<void>(states.of(weights("n", {{}, 16}, i64, {2}), {})); });
}

TEST_F(ServeTest, OtherInputsAreAskedForInVain)
{
    golden.prompt = {1, 2};
    expect_refused("no entry of 'prompt'", [&] { static_cast<void>(generate(safetensors("head.weight", table()))); });
}

TEST_F(ServeTest, TheProgramSaysWhetherTheyArePyTorchs)
{
    const auto [code, text] = run();
    EXPECT_EQ(code, 0) << text;
    EXPECT_THAT(text, HasSubstr(": those that PyTorch generated"));
    EXPECT_THAT(text, testing::ContainsRegex("PyTorch +1234\n"));
    EXPECT_THAT(text, testing::ContainsRegex("warmgraph, C.. +[0-9]+\n"));
}

TEST_F(ServeTest, TheProgramFailsWhereTheyAreOthers)
{
    auto tokens = golden.tokens;
    tokens.back() = (tokens.back() + 1) % k_vocabulary;
    write_golden(tokens);
    const auto [code, text] = run();
    EXPECT_EQ(code, 1);
    EXPECT_THAT(text, HasSubstr(": not those that PyTorch generated"));
}

TEST_F(ServeTest, TheProgramSaysWhatIsNotThere)
{
    EXPECT_EQ(run("opencl:no-such-device").first, 1);
    EXPECT_THAT(run("opencl:no-such-device").second, HasSubstr("no-such-device"));
    std::filesystem::remove(dir.path() / "golden.json");
    const auto [code, text] = run();
    EXPECT_EQ(code, 1);
    EXPECT_THAT(text, HasSubstr("run record.py first"));
}

TEST(ServeMetadata, OlderEntriesHaveLessInIt)
{
    const auto parsed = serve::EntryMetadata::parse(R"({"warmgraph.torch": 1, "written": ["kv"]})");
    EXPECT_TRUE(parsed.written.contains("kv"));
    EXPECT_TRUE(parsed.parts.empty() && parsed.contents.empty());
}

TEST(ServeMetadata, WhatIsNoneIsRefused)
{
    for (const auto& [text, message] : std::map<std::string, std::string>{
             {"", "cannot be read"},
             {"[]", "cannot be read"},
             {R"({"warmgraph.torch": 2})", "version 2, expected 1"},
             {R"({"warmgraph.torch": 1})", "written"},
             {R"({"warmgraph.torch": 1, "written": [], "aliases": {"w": [["a", 0, "f33", [1], [1]]]}})", "'f33'"},
             {R"({"warmgraph.torch": 1, "written": [], "aliases": {"w": [["a", 0, "f32", [2, 2], [1, 2]]]}})",
              "strides [1, 2]"},
             {R"({"warmgraph.torch": 1, "written": [], "aliases": {"w": [["a"]]}})", "cannot be read"},
             {R"({"warmgraph.torch": 1, "written": [], "contents": {"w": "?"}})", "not base64"}})
        expect_refused(message, [&] { static_cast<void>(serve::EntryMetadata::parse(text)); });
}

} // namespace
} // namespace warmgraph::test::serve_test
