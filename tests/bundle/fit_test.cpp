// Whether an entry fits a machine is decided by its guards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warmgraph/bundle/compatibility.hpp"

namespace warmgraph::test::fit_test {
namespace {

using bundle::judge;
using bundle::Verdict;
using cachefmt::Guards;
using cachefmt::Role;

const Guards k_recorded{{{"backend", "cuda", Role::must_match},
                         {"code.build_id", "abc", Role::must_match},
                         {"device.architecture", "sm_90", Role::must_match},
                         {"device.name", "H200", Role::advisory},
                         {"driver.version", "580.10", Role::must_match}},
                        {},
                        {}};

bundle::MachineFacts here(const std::string& architecture, const std::string& driver)
{
    return {{"backend", "cuda", Role::must_match},
            {"device.architecture", architecture, Role::must_match},
            {"device.name", "another", Role::advisory},
            {"driver.version", driver, Role::must_match}};
}

TEST(BundleFit, HoldsEqualityAndOrderApart)
{
    EXPECT_EQ(judge(k_recorded, here("sm_90", "580.10")).verdict, Verdict::fits) << "code is the program's to tell";
    const auto newer = judge(k_recorded, here("sm_90", "590.2"));
    EXPECT_EQ(newer.verdict, Verdict::fits_after);
    EXPECT_EQ(newer.field, "driver.version");
    EXPECT_THAT(newer.detail, testing::HasSubstr("580.10 recorded, 590.2 now"));
    EXPECT_EQ(judge(k_recorded, here("sm_90", "590.2"), {guards::VersionRule::same_or_newer}).verdict, Verdict::fits);
    EXPECT_EQ(judge(k_recorded, here("sm_90", "570.1")).verdict, Verdict::does_not) << "an older one";
    const auto both = judge(k_recorded, here("sm_80", "590.2"));
    EXPECT_EQ(both.verdict, Verdict::does_not);
    EXPECT_EQ(both.field, "device.architecture") << "the one that nobody can accept";
    EXPECT_EQ(bundle::to_text(both), "does not fit, because of device.architecture");
}

TEST(BundleFit, TakesAnUnknownFactForADifference)
{
    EXPECT_EQ(judge(k_recorded, here(cachefmt::k_unknown, "580.10")).field, "device.architecture");
}

TEST(BundleFit, SharesTheEnvironmentThatAllEntriesHave)
{
    std::vector<cachefmt::EntryHeader> entries(2);
    entries[0].guards = entries[1].guards = k_recorded;
    entries[1].guards.facts[4].value = "570.1";
    const auto shared = bundle::shared_environment(entries);
    EXPECT_EQ(bundle::environment_text(shared), "backend cuda, device.architecture sm_90");
}

} // namespace
} // namespace warmgraph::test::fit_test
