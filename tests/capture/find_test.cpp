// Cache::entries with a Spec: the readable text of an entry, by function, facts and inputs.
#include "expect_error.hpp"
#include "facade_fixture.hpp"

namespace warmgraph::test::find_test {
namespace {

class FindTest : public FacadeTest {
protected:
    [[nodiscard]] Spec spec_of(std::int64_t count, const std::string& metadata = "") const
    {
        Spec spec = x_to_y(f32, count, {program});
        spec.version = "1";
        spec.metadata = metadata;
        return spec;
    }
    void record(std::int64_t count, const std::string& metadata) const
    {
        Cache cache{options()};
        Function f = cache.wrap("f", device, spec_of(count, metadata), [&](Recorder& r) {
            r.stream().launch(program, "add_one", {.grid = {static_cast<std::uint32_t>(count / 16)}, .block = {16}},
                              r["x"], r["y"]);
        });
        const Buffer x = floats(5, count), y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        ASSERT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded);
    }
    [[nodiscard]] std::optional<std::string> found(const Cache& cache, const std::string& name, const Spec& spec) const
    {
        const auto listed = cache.entries(name, device, {.spec = spec, .most = 1, .metadata_only = true});
        const auto whole = cache.entries(name, device, {.spec = spec});
        EXPECT_EQ(listed.empty(), whole.empty());
        if (listed.empty() || whole.empty()) return std::nullopt;
        EXPECT_EQ(listed[0].spec.metadata, whole[0].spec.metadata);
        EXPECT_EQ(listed[0].digest, whole[0].digest);
        EXPECT_EQ(whole[0].misfit, "");
        return listed[0].spec.metadata;
    }
    /// The caller does not know the outputs.
    [[nodiscard]] Spec sought(std::int64_t count) const
    {
        Spec spec = spec_of(count);
        spec.outputs.clear();
        return spec;
    }
};

TEST_F(FindTest, GivesTheTextOfTheEntryThatFits)
{
    ASSERT_NO_FATAL_FAILURE(record(16, "one tensor"));
    ASSERT_NO_FATAL_FAILURE(record(32, ""));
    const Cache cache{options()};
    EXPECT_EQ(found(cache, "f", sought(16)), "one tensor");
    EXPECT_EQ(found(cache, "f", sought(32)), "") << "there, with no text";
    EXPECT_EQ(found(cache, "f", sought(48)), std::nullopt);
    EXPECT_EQ(found(cache, "g", sought(16)), std::nullopt);
}

TEST_F(FindTest, AsksForTheSameFactsAsACall)
{
    ASSERT_NO_FATAL_FAILURE(record(16, "one tensor"));
    const Cache cache{options()};
    Spec other = sought(16);
    other.version = "2";
    EXPECT_EQ(found(cache, "f", other), std::nullopt);
    other = sought(16);
    other.config = {{"mode", "fast"}};
    EXPECT_EQ(found(cache, "f", other), std::nullopt);
    other = sought(16);
    other.inputs[0].dtype = i32;
    EXPECT_EQ(found(cache, "f", other), std::nullopt);
}

/// There are no programs, so both functions use the same facts.
TEST_F(FindTest, WhatIsLoadedNextIsHeldToItsOwnFacts)
{
    const auto copies = [](const std::string& mode, DType of_output = f32) {
        Spec spec;
        spec.inputs = {input("x", f32, {16})};
        spec.outputs = {output("y", of_output, {16})};
        spec.version = "1";
        spec.config = {{"mode", mode}};
        return spec;
    };
    const Buffer x = floats(5, 16), y = device.allocate(64);
    const auto call = [&](Function& f) { return f({{"x", x}, {"y", y}}); };
    const auto is_found = [&](const Cache& cache) {
        Spec spec = copies("fast");
        spec.outputs.clear();
        return found(cache, "f", spec).has_value();
    };
    {
        Cache cache{options()};
        Function f = cache.wrap("f", device, copies("fast"), [](Recorder& r) { r.stream().copy(r["y"], r["x"], 64); });
        ASSERT_EQ(call(f), Outcome::recorded);
    }
    {
        Cache cache{options()};
        ASSERT_TRUE(is_found(cache));
        Function f = cache.load("f", device, copies("fast"));
        EXPECT_EQ(call(f), Outcome::replayed);
    }
    Spec inputs = copies("fast"); // with the same inputs as the function that was recorded
    inputs.inputs.push_back(inputs.outputs.front());
    inputs.outputs.clear();
    const std::tuple<const char*, std::string, Spec> k_others[] = {{"another configuration", "f", copies("slow")},
                                                                   {"another function", "g", copies("fast")},
                                                                   {"another output", "f", copies("fast", i32)},
                                                                   {"an input in place of the output", "f", inputs}};
    for (const auto& [what, name, spec] : k_others) {
        Cache cache{options()};
        ASSERT_TRUE(is_found(cache));
        Function f = cache.load(name, device, spec);
        try {
            call(f);
            FAIL() << what;
        } catch (const Exception& exception) {
            EXPECT_EQ(exception.code(), ErrorCode::miss_forbidden) << what << ": " << exception.what();
        }
    }
}

TEST_F(FindTest, FindsNothingWhereNothingMayBeReplayed)
{
    ASSERT_NO_FATAL_FAILURE(record(16, "one tensor"));
    EXPECT_EQ(found(Cache{options(Policy::off)}, "f", sought(16)), std::nullopt);
    EXPECT_EQ(found(Cache{options(Policy::refresh)}, "f", sought(16)), std::nullopt);
    Spec nameless = sought(16);
    nameless.version.clear();
    const Cache cache{options()};
    EXPECT_THROW(static_cast<void>(found(cache, "f", nameless)), Exception);
    EXPECT_THROW(static_cast<void>(found(cache, "../f", sought(16))), Exception);
}

TEST_F(FindTest, AnEntryThatCannotBeReadIsNone)
{
    ASSERT_NO_FATAL_FAILURE(record(16, "one tensor"));
    for (const auto& file : std::filesystem::recursive_directory_iterator{dir.path() / "cache"})
        if (file.path().extension() == ".wg") std::filesystem::resize_file(file.path(), 64);
    const Cache cache{options()};
    EXPECT_EQ(found(cache, "f", sought(16)), std::nullopt);
}

TEST_F(FindTest, AStreamOfSomebodyElsesIsForCuda)
{
    int not_ours = 0;
    EXPECT_THROW(static_cast<void>(device.view_stream(&not_ours)), Exception);
}

TEST(PrepareRecordingTest, KnowsItsBackends)
{
    Device::prepare_recording("opencl"); // this backend has nothing to prepare
    try {
        Device::prepare_recording("vulkan");
        FAIL() << "no such backend";
    } catch (const Exception& exception) {
        EXPECT_EQ(exception.code(), ErrorCode::not_found);
        EXPECT_THAT(exception.what(), HasSubstr("opencl"));
    }
}

} // namespace
} // namespace warmgraph::test::find_test
