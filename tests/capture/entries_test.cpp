// Cache::entries: a process that knows only the name of a function gets its interface and can load it.
#include <chrono>
#include <filesystem>
#include <functional>

#include "facade_fixture.hpp"
#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::test::entries_test {
namespace {

void expect_thrown(ErrorCode code, const std::string& text, const std::function<void()>& f)
{
    EXPECT_TRUE(failed_with(thrown_by(f), code, text)) << "nothing was thrown, expected " << text;
}

class EntriesTest : public FacadeTest {
protected:
    [[nodiscard]] Spec spec_of(std::int64_t count) const
    {
        Spec spec = x_to_y(f32, count);
        spec.states = {state("sum", sum, f32, {count}), weights("w", kept, f32, {2, count / 2})};
        spec.scalars = {scalar("n", DType::i32, 0, 100), scalar("m", DType::i32)};
        spec.values = {scalar("kind", DType::i64)};
        spec.code = {program};
        spec.config = {{"mode", "fast"}, {"model.size", "1"}};
        spec.environment = {"WARMGRAPH_TEST_MODE"};
        spec.metadata = metadata;
        return spec;
    }
    void record(std::int64_t count = k_count)
    {
        Cache cache{options()};
        Function f = cache.wrap(name, device, spec_of(count), [this](Recorder& r) {
            const Launch launch{.grid = {static_cast<std::uint32_t>(r.sizes("x")[0] / 16), 1, 1}, .block = {16, 1, 1}};
            const auto shifted = r.alloc("shifted", static_cast<std::uint64_t>(r.sizes("x")[0]) * 4);
            r.stream().launch(program, "add_int", launch, r["x"], shifted, r.scalar<std::int32_t>("n"));
            r.stream().launch(program, "accumulate", launch, r["sum"], shifted);
            r.stream().launch(program, "add_int", launch, r["w"], shifted, r.scalar<std::int32_t>("m"));
            r.stream().launch(program, "add", launch, shifted, r["sum"], r["y"]);
        });
        const Buffer x = floats(5, count), y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        ASSERT_EQ(f({{"x", x}, {"y", y}, {"n", 2}, {"m", 1}, {"kind", std::int64_t{7}}}), Outcome::recorded)
            << f.report().reason;
        device.synchronize();
    }

    Buffer sum = floats(0), kept = floats(100);
    std::string name = "f", metadata = "a text";
};

TEST_F(EntriesTest, TellWhatTheFunctionDeclared)
{
    ASSERT_NO_FATAL_FAILURE(record());
    const Cache cache{options()};
    const auto found = cache.entries("f", device);
    ASSERT_EQ(found.size(), 1U);
    const Spec& spec = found[0].spec;
    ASSERT_EQ(spec.inputs.size(), 1U);
    EXPECT_EQ(spec.inputs[0].name, "x");
    EXPECT_EQ(spec.inputs[0].dtype, f32);
    EXPECT_EQ(spec.inputs[0].sizes, std::vector<std::int64_t>{k_count});
    EXPECT_TRUE(spec.inputs[0].strides.empty()) << "contiguous";
    ASSERT_EQ(spec.outputs.size(), 1U);
    EXPECT_EQ(spec.outputs[0].name, "y");
    ASSERT_EQ(spec.states.size(), 2U);
    EXPECT_EQ(spec.states[0].access, Access::read_write);
    EXPECT_EQ(spec.states[1].access, Access::read_only);
    EXPECT_EQ(spec.states[1].sizes, (std::vector<std::int64_t>{2, k_count / 2}));
    EXPECT_EQ(spec.states[1].memory, (MemoryRef{{}, k_count * 4})) << "a size, and no address";
    ASSERT_EQ(spec.scalars.size(), 2U);
    EXPECT_EQ(spec.scalars[0].range, (std::pair{0.0, 100.0}));
    EXPECT_EQ(spec.scalars[1].range, std::nullopt);
    EXPECT_EQ(found[0].values.at("kind").bits, 7U);
    EXPECT_EQ(spec.config, (std::map<std::string, std::string>{{"mode", "fast"}, {"model.size", "1"}}));
    EXPECT_EQ(spec.environment, std::vector<std::string>{"WARMGRAPH_TEST_MODE"});
    EXPECT_EQ(spec.metadata, "a text");
    EXPECT_TRUE(spec.recorded_code.contains("program.small"));
    EXPECT_TRUE(spec.recorded_code.contains("code.build_id"));
    EXPECT_EQ(found[0].misfit, "");
    EXPECT_EQ(entries().front().stem().string(), found[0].digest);
    EXPECT_THAT(found[0].recorded, StartsWith("20"));
}

TEST_F(EntriesTest, CanBeLoadedByWhoHasNoneOfTheCode)
{
    ASSERT_NO_FATAL_FAILURE(record());
    Cache cache{options(Policy::require_hit)};
    Spec spec = cache.entries("f", device).at(0).spec;
    const Buffer other_sum = floats(1000), other_weights = floats(200);
    spec.states[0].memory = other_sum;
    spec.states[1].memory = other_weights;
    Function f = cache.load("f", device, spec);
    const Buffer x = floats(1), y = floats(0);
    ASSERT_EQ(f({{"x", x}, {"y", y}, {"n", 3}, {"m", 4}, {"kind", std::int64_t{7}}}), Outcome::replayed);
    const auto result = read(y), sums = read(other_sum);
    for (std::size_t i = 0; i < result.size(); ++i) {
        const auto at = static_cast<float>(i);
        EXPECT_EQ(sums[i], 1000 + at + (1 + at + 3));
        EXPECT_EQ(result[i], sums[i] + 200 + at + 4);
    }
}

TEST_F(EntriesTest, AStateThatNobodyGivesIsMissing)
{
    ASSERT_NO_FATAL_FAILURE(record());
    Cache cache{options()};
    Spec spec = cache.entries("f", device).at(0).spec;
    spec.states[0].memory = sum;
    Function f = cache.load("f", device, spec);
    const Buffer x = floats(1), y = floats(0);
    expect_thrown(ErrorCode::invalid_argument, "'w'",
                  [&] { f({{"x", x}, {"y", y}, {"n", 3}, {"m", 4}, {"kind", std::int64_t{7}}}); });
}

TEST_F(EntriesTest, TheCodeIsTheEntrysWordAndNoOther)
{
    ASSERT_NO_FATAL_FAILURE(record());
    Cache cache{options()};
    Spec spec = cache.entries("f", device).at(0).spec;
    spec.states[0].memory = sum;
    spec.states[1].memory = kept;
    spec.recorded_code["program.small"] = "another";
    Function f = cache.load("f", device, spec);
    const Buffer x = floats(1), y = floats(0);
    expect_thrown(ErrorCode::miss_forbidden, "program.small",
                  [&] { f({{"x", x}, {"y", y}, {"n", 3}, {"m", 4}, {"kind", std::int64_t{7}}}); });
    expect_thrown(ErrorCode::invalid_argument, "recorded_code",
                  [&] { static_cast<void>(cache.wrap("g", device, spec, [](Recorder&) {})); });
}

TEST_F(EntriesTest, TheEnvironmentIsLookedUpHere)
{
    ASSERT_NO_FATAL_FAILURE(record());
    Cache cache{options()};
    Spec spec = cache.entries("f", device).at(0).spec;
    spec.states[0].memory = sum;
    spec.states[1].memory = kept;
    ::setenv("WARMGRAPH_TEST_MODE", "other", 1);
    Function f = cache.load("f", device, spec);
    const Buffer x = floats(1), y = floats(0);
    expect_thrown(ErrorCode::miss_forbidden, "WARMGRAPH_TEST_MODE",
                  [&] { f({{"x", x}, {"y", y}, {"n", 3}, {"m", 4}, {"kind", std::int64_t{7}}}); });
    ::unsetenv("WARMGRAPH_TEST_MODE");
}

TEST_F(EntriesTest, AreThereForEachShapeAndForNoOtherNameModelOrPolicy)
{
    ASSERT_NO_FATAL_FAILURE(record(32));
    ASSERT_NO_FATAL_FAILURE(record(k_count));
    const Cache cache{options()};
    const auto found = cache.entries("f", device);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_NE(found[0].spec.inputs[0].sizes, found[1].spec.inputs[0].sizes);
    EXPECT_TRUE(cache.entries("g", device).empty());
    CacheOptions other = options();
    other.model = "another";
    EXPECT_TRUE(Cache{other}.entries("f", device).empty());
    EXPECT_TRUE((Cache{options(Policy::off)}.entries("f", device).empty()));
    EXPECT_TRUE((Cache{options(Policy::refresh)}.entries("f", device).empty()));
    expect_thrown(ErrorCode::invalid_argument, "../f", [&] { static_cast<void>(cache.entries("../f", device)); });
}

TEST_F(EntriesTest, AreAsManyAsWasAskedForTheLastUsedFirst)
{
    ASSERT_NO_FATAL_FAILURE(record(32));
    ASSERT_NO_FATAL_FAILURE(record(k_count));
    for (const auto& file : entries())
        std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours{1});
    const auto last = entries().front();
    std::filesystem::last_write_time(last, std::filesystem::file_time_type::clock::now());
    const Cache cache{options()};
    const auto found = cache.entries("f", device, {.most = 1});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].digest, last.stem().string());
    EXPECT_EQ(cache.entries("f", device, {.most = 2}).size(), 2U);
    EXPECT_TRUE(cache.entries("f", device, {.most = 0}).empty());
}

TEST_F(EntriesTest, HaveTheirMetadataAloneWhereNoMoreIsAskedFor)
{
    ASSERT_NO_FATAL_FAILURE(record());
    const Cache cache{options()};
    const auto found = cache.entries("f", device, {.metadata_only = true});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].spec.metadata, "a text");
    EXPECT_EQ(found[0].digest, entries().front().stem().string());
    EXPECT_TRUE(found[0].spec.inputs.empty());
}

/// A user who can write the folder can store any interface. An interface that no declaration can have is not listed.
TEST_F(EntriesTest, WhoseInterfaceLiesAreLeftOut)
{
    ASSERT_NO_FATAL_FAILURE(record());
    const auto path = entries().front();
    const auto text = file_bytes(path);
    const auto view = std::as_bytes(std::span{text});
    const Bytes bytes(view.begin(), view.end());
    const auto folder = [](const auto& part) { return part.filename().string(); };
    const cachefmt::EntryKey key{{folder(path.parent_path().parent_path().parent_path()),
                                  folder(path.parent_path().parent_path()), folder(path.parent_path())},
                                 *digest_from_hex(path.stem().string())};
    const auto good = take(cachefmt::decode(bytes, key));
    for (const std::string interface :
         {"", "1 input, 1 output, 1 state", "4 inputs", "99999999999999999999 input",
          "1 input, 1 output, 1 state, 1 weights",
          "1 input, 1 output, 1 state, 1 weights; scalar n i32 [0, 100]; scalar m f128 [0, 1]",
          "1 input, 1 output, 1 state, 1 weights; scalar x i32 [0, 100]",
          "1 input, 1 output, 1 state, 1 weights; scalar"}) {
        std::filesystem::remove(path);
        for (const auto& file : entries()) std::filesystem::remove(file);
        auto entry = good;
        for (auto& fact : entry.header.guards.facts)
            if (fact.name == "interface") fact.value = interface;
        entry.header.key.guards_digest = cachefmt::guards_digest(entry.header.guards);
        const auto forged = take(cachefmt::encode(entry));
        const auto* const begin = reinterpret_cast<const char*>(forged.data());
        write_file(path.parent_path() / (to_hex(entry.header.key.guards_digest) + ".wg"),
                   {begin, begin + forged.size()});
        const auto listed = Cache{options()}.entries("f", device);
        if (interface == "1 input, 1 output, 1 state, 1 weights")
            EXPECT_EQ(listed.size(), 1U) << "that is a declaration";
        else
            EXPECT_TRUE(listed.empty()) << interface;
    }
}

TEST_F(EntriesTest, ThatCannotBeReadAreLeftOut)
{
    ASSERT_NO_FATAL_FAILURE(record(32));
    ASSERT_NO_FATAL_FAILURE(record(k_count));
    std::filesystem::resize_file(entries().front(), 64);
    EXPECT_EQ(Cache{options()}.entries("f", device).size(), 1U);
}

} // namespace
} // namespace warmgraph::test::entries_test
