// Tests the facts that all entries of a machine share, and whether a machine has the same facts.
#include <algorithm>

#include "matchers.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/guards/environment.hpp"

namespace warmgraph::guards::environment_test {
namespace {

std::vector<Fact> facts_of_machine()
{
    return {{"backend", "cuda", Role::must_match},
            {"config.dtype", "f16", Role::must_match},
            {"device.architecture", "sm_90", Role::must_match},
            {"device.name", "NVIDIA H200", Role::advisory},
            {"device.units", "132", Role::must_match},
            {"driver.version", "580.159.03", Role::must_match},
            {"env.OMP_NUM_THREADS", "4", Role::must_match},
            {"runtime.version", "13.0", Role::must_match}};
}

std::vector<Fact> with(std::string_view name, const std::string& value)
{
    auto facts = facts_of_machine();
    std::ranges::find(facts, name, &Fact::name)->value = value;
    return facts;
}

std::vector<std::string> names(const std::vector<Mismatch>& fields)
{
    std::vector<std::string> result;
    for (const Mismatch& field : fields) result.push_back(field.fact);
    return result;
}

TEST(Environment, IsBackendDeviceDriverAndRuntime)
{
    std::vector<std::string> found;
    for (const Fact& fact : environment_of(facts_of_machine())) found.push_back(fact.name);
    EXPECT_THAT(found,
                ElementsAre("backend", "device.architecture", "device.units", "driver.version", "runtime.version"));
}

TEST(Environment, HasAKeyThatEachOfItsFactsChangesAndNothingElse)
{
    const std::string key = environment_key(facts_of_machine());
    EXPECT_EQ(key.size(), 12U);
    EXPECT_EQ(key, environment_key(facts_of_machine()));
    for (const char* name : {"config.dtype", "device.name", "env.OMP_NUM_THREADS"})
        EXPECT_EQ(environment_key(with(name, "x")), key) << name;
    for (const char* name : {"backend", "device.architecture", "device.units", "driver.version", "runtime.version"})
        EXPECT_NE(environment_key(with(name, "x")), key) << name;
    auto fewer = facts_of_machine();
    std::erase_if(fewer, [](const Fact& fact) { return fact.name == "device.units"; });
    EXPECT_NE(environment_key(fewer), key);
    EXPECT_EQ(environment_key({{"config.dtype", "f16", Role::must_match}}), "");
    EXPECT_EQ(environment_key({}), "");
}

TEST(Environment, ThatIsTheSameFitsWhateverElseDiffers)
{
    EXPECT_EQ(compare_environments(facts_of_machine(), facts_of_machine()).fit, EnvironmentFit::same);
    EXPECT_EQ(compare_environments(facts_of_machine(), with("config.dtype", "f32")).fit, EnvironmentFit::same);
    EXPECT_EQ(compare_environments(facts_of_machine(), with("device.name", "another")).fit, EnvironmentFit::same);
}

TEST(Environment, WithANewerDriverIsNoOther)
{
    const auto newer = compare_environments(facts_of_machine(), with("driver.version", "590.1"));
    EXPECT_EQ(newer.fit, EnvironmentFit::newer);
    EXPECT_THAT(names(newer.fields), ElementsAre("driver.version"));
    EXPECT_EQ(fields_text(newer.fields), "driver.version 580.159.03 recorded, 590.1 here");
    const auto older = compare_environments(facts_of_machine(), with("driver.version", "570.1"));
    EXPECT_EQ(older.fit, EnvironmentFit::differs);
    EXPECT_THAT(names(older.fields), ElementsAre("driver.version"));
}

TEST(Environment, ThatDiffersNamesTheFieldsButNotAnOrderThatHolds)
{
    auto here = with("driver.version", "590.1");
    std::ranges::find(here, "device.units", &Fact::name)->value = "114";
    std::ranges::find(here, "device.architecture", &Fact::name)->value = "sm_100";
    const auto compared = compare_environments(facts_of_machine(), here);
    EXPECT_EQ(compared.fit, EnvironmentFit::differs);
    EXPECT_THAT(names(compared.fields), ElementsAre("device.architecture", "device.units"));
}

TEST(Environment, ThatCouldNotBeProbedIsAnother)
{
    EXPECT_EQ(compare_environments(facts_of_machine(), with("device.units", cachefmt::k_unknown)).fit,
              EnvironmentFit::differs);
}

TEST(Environment, OrderIsOfDriverAndRuntimeAlone)
{
    for (const Fact& fact : facts_of_machine())
        EXPECT_EQ(cachefmt::fact::has_order(fact.name),
                  fact.name == "driver.version" || fact.name == "runtime.version");
    EXPECT_THAT(compare_environments({}, facts_of_machine()).fields, IsEmpty());
}

} // namespace
} // namespace warmgraph::guards::environment_test
