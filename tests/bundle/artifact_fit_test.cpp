// Compiled programs and tuned configurations say which devices they fit.
#include "artifact_fixture.hpp"

namespace warmgraph::test::artifact_fit_test {
namespace {

using bundle::Verdict;
using cachefmt::Role;

class ArtifactFit : public ArtifactTest {
protected:
    ArtifactFit()
    {
        m_tuned.device = {{"backend", "cuda"}, {"device.architecture", "sm_90"}};
        m_tuned.driver = {{"driver.version", "580.10"}};
    }
    static bundle::MachineFacts here(const std::string& architecture, const std::string& driver)
    {
        return {{"backend", "cuda", Role::must_match},
                {"device.architecture", architecture, Role::must_match},
                {"driver.version", driver, Role::must_match}};
    }
    autotune::BestConfig m_tuned = m_best;
};

TEST_F(ArtifactFit, OfAProgramIsItsTargetAndItsCompiler)
{
    const precompile::Ingredients& program = m_program.ingredients;
    EXPECT_EQ(bundle::judge_compiled(program, {program.compiler, "sm_90"}).verdict, Verdict::fits);
    const auto target = bundle::judge_compiled(program, {program.compiler, "sm_80", {"sm_80a"}});
    EXPECT_EQ(to_text(target), "does not fit, because of target");
    EXPECT_THAT(target.detail, HasSubstr("target sm_90 recorded, sm_80 now: compile it for this device"));
    const auto compiler = bundle::judge_compiled(program, {"NVRTC 12.0", "sm_90"});
    EXPECT_EQ(to_text(compiler), "does not fit, because of compiler");
    EXPECT_THAT(compiler.detail, HasSubstr("compile it again"));
}

TEST_F(ArtifactFit, OfAProgramTakesWhatTheDeviceRunsBesidesAndNeedsNoCompiler)
{
    precompile::Ingredients program = m_program.ingredients;
    program.target = "sm_90a";
    EXPECT_EQ(bundle::judge_compiled(program, {program.compiler, "sm_90", {"sm_90a"}}).verdict, Verdict::fits);
    EXPECT_EQ(bundle::judge_compiled(program, {"", "sm_90", {"sm_90a"}}).verdict, Verdict::fits);
}

TEST_F(ArtifactFit, OfATunedConfigurationIsItsDeviceAndThenItsDriver)
{
    EXPECT_EQ(bundle::judge_tuned(m_tuned, here("sm_90", "580.10")).verdict, Verdict::fits);
    const auto device = bundle::judge_tuned(m_tuned, here("sm_80", "580.20"));
    EXPECT_EQ(to_text(device), "does not fit, because of device.architecture");
    EXPECT_EQ(device.detail, "device.architecture sm_90 recorded, sm_80 now: tune it on this device");
    const auto driver = bundle::judge_tuned(m_tuned, here("sm_90", "580.20"));
    EXPECT_EQ(to_text(driver), "fits if another driver.version is accepted");
    EXPECT_THAT(driver.detail, HasSubstr("TuningDriver::any"));
    EXPECT_EQ(bundle::judge_tuned(m_tuned, {}).field, "backend") << "a fact that nobody knows is no match";
}

TEST_F(ArtifactFit, IsAskedOfTheMembersOfABundle)
{
    const auto store = open();
    put_all(*store);
    const Bytes bytes = bundle_of(*store);
    const auto bundle = open_bundle(bytes).value();
    const bundle::DeviceOf none = [](const std::string&) { return nullptr; };
    const auto fit = [&](const ArtifactName& name) {
        return bundle::judge_artifact(*bundle, *bundle->find(member_name(name)), none);
    };
    EXPECT_EQ(fit(m_program_name).value().detail, "recorded with cuda, but there is no such device here");
    EXPECT_EQ(fit(m_best_name).value().field, "backend");
    EXPECT_EQ(fit(m_module_name).value().field, "backend");
    EXPECT_EQ(fit(m_profile_name).value().verdict, Verdict::fits);
    Bytes damaged = bytes;
    damaged[bundle->find(member_name(m_best_name))->offset] ^= std::byte{1};
    const auto other = open_bundle(damaged).value();
    EXPECT_TRUE(
        failed_with(bundle::judge_artifact(*other, *other->find(member_name(m_best_name)), none), ErrorCode::corrupt));
}

} // namespace
} // namespace warmgraph::test::artifact_fit_test
