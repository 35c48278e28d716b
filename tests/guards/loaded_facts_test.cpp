// Tests the guards that are checked in a process without the function's code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/guards/loaded_facts.hpp"

namespace warmgraph::test::loaded_facts_test {
namespace {

using cachefmt::Fact;
using cachefmt::Role;

class LoadedFacts : public testing::Test {
protected:
    LoadedFacts() { guards::canonicalize(recorded); }

    [[nodiscard]] std::string misfits() const
    {
        return guards::summarize(guards::evaluate_facts(recorded, guards::facts_of_loaded(recorded, here)));
    }
    Fact& fact(const std::string& name) { return *std::ranges::find(recorded, name, &Fact::name); }

    std::map<std::string, std::string> variables{{"MODE", "fast"}};
    guards::ProcessFacts here{{{"backend", "opencl", Role::must_match}, {"device.units", "4", Role::must_match}},
                              "toy",
                              "decode",
                              "world1global_rank0",
                              {{"layers", "12"}},
                              [this](const char* name) -> std::optional<std::string> {
                                  const auto found = variables.find(name);
                                  return found != variables.end() ? std::optional{found->second} : std::nullopt;
                              }};
    std::vector<Fact> recorded{{"backend", "opencl", Role::must_match},
                               {"device.units", "4", Role::must_match},
                               {"entry.format", std::to_string(cachefmt::k_format_version), Role::must_match},
                               {"interface", "1 input", Role::must_match},
                               {"code.version", "3", Role::must_match},
                               {"program.scale", "9f", Role::must_match},
                               {"config.dtype", "f16", Role::must_match},
                               {"config.model.layers", "12", Role::must_match},
                               {"env.MODE", "fast", Role::must_match},
                               {"env.OTHER", "(unset)", Role::must_match},
                               {"model.name", "toy", Role::identity},
                               {"function.name", "decode", Role::identity},
                               {"rank", "world1global_rank0", Role::identity},
                               {"host.name", "elsewhere", Role::advisory}};
};

TEST_F(LoadedFacts, AgreeWithAnEntryOfThisPlace) { EXPECT_EQ(misfits(), ""); }

TEST_F(LoadedFacts, TakeTheEntrysWordForItsCodeAlone)
{
    for (const char* name : {"code.version", "program.scale", "config.dtype", "interface"}) {
        fact(name).value += "x";
        EXPECT_EQ(misfits(), "") << name;
    }
    for (const char* name : {"backend", "device.units", "entry.format", "config.model.layers", "env.MODE", "env.OTHER",
                             "model.name", "function.name", "rank"}) {
        const std::string before = fact(name).value;
        fact(name).value += "x";
        EXPECT_THAT(misfits(), testing::StartsWith(name));
        fact(name).value = before;
    }
}

TEST_F(LoadedFacts, LookAtTheEnvironmentOfThisProcess)
{
    variables["MODE"] = "slow";
    EXPECT_EQ(misfits(), "env.MODE fast recorded, slow now");
    variables = {{"MODE", "fast"}, {"OTHER", ""}};
    EXPECT_THAT(misfits(), testing::StartsWith("env.OTHER"));
}

TEST_F(LoadedFacts, DisagreeAboutWhatOneSideAloneHas)
{
    here.device.push_back({"device.partition", "1g", Role::must_match});
    EXPECT_THAT(misfits(), testing::StartsWith("device.partition"));
    here.device.pop_back();
    recorded.push_back({"zone", "1", Role::must_match});
    EXPECT_THAT(misfits(), testing::StartsWith("zone"));
}

TEST_F(LoadedFacts, AnUnknownCodeAgreesWithNothing)
{
    fact("code.version").value = cachefmt::k_unknown;
    EXPECT_THAT(misfits(), testing::StartsWith("code.version"));
}

} // namespace
} // namespace warmgraph::test::loaded_facts_test
