// Tests whether a stored configuration may be used.

#include "matchers.hpp"
#include "sample_best_config.hpp"
#include "warmgraph/autotune/judge.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::autotune::judge_test {
namespace {

using Use = WinnerVerdict::Use;

class Judged : public testing::Test {
protected:
    void expect_miss(std::string_view why) const
    {
        const WinnerVerdict judged = judge(m_stored, m_now);
        EXPECT_EQ(judged.use, Use::none);
        EXPECT_THAT(judged.why_not, HasSubstr(why));
    }
    void expect(Use use) const
    {
        const WinnerVerdict judged = judge(m_stored, m_now);
        EXPECT_EQ(judged.use, use) << judged.why_not;
    }

    BestConfig m_stored = test::sample_best_config();
    ConfigRequest m_now{
        m_stored.kernel, m_stored.key, {test::sample_candidates(), {{"LANES", {1, 2, 4, 8}}}}, m_stored.driver};
};

TEST_F(Judged, AnEnumeratedWinnerIsUsed) { expect(Use::winner); }

TEST_F(Judged, AnEnumeratedWinnerIsWhereDescentStarts)
{
    m_now.search = SearchMethod::coordinate_descent;
    expect(Use::start);
}

TEST_F(Judged, OtherCandidatesAreAMiss)
{
    m_now.space.candidates.push_back({{"LANES", 1}, {"ROWS", 1}});
    expect_miss("other candidates");
}

TEST_F(Judged, ExactlyOneCandidateMustMatch)
{
    m_stored.config = {{"LANES", 2}, {"ROWS", 2}};
    expect_miss("0 candidates are equal to the stored winner 'LANES=2 ROWS=2', expected exactly one");
    // Another test refuses a kernel that declares a configuration twice. This one refuses a stored winner that is twice
    // among the candidates.
    m_stored.config = m_now.space.candidates[1];
    m_now.space.candidates.push_back(m_stored.config);
    m_stored.configs_hash = configs_hash(m_now.space.candidates);
    expect_miss("2 candidates");
}

TEST_F(Judged, AnotherKernelIsAMiss)
{
    m_now.kernel = "matvec";
    expect_miss("stored for kernel");
    m_now.kernel = m_stored.kernel;
    m_now.key = sha256(as_bytes("other"));
    expect_miss("stored for kernel");
}

TEST_F(Judged, AnotherDriverIsAMissUnlessItDoesNotMatter)
{
    m_now.driver["driver.version"] = "3.2";
    expect_miss("driver.version 3.1, but this process has 3.2");
    m_now.driver_rule = DriverRule::any;
    expect(Use::winner);
}

TEST_F(Judged, ADriverThatNobodyKnowsNeverMatches)
{
    m_stored.driver["driver.version"] = m_now.driver["driver.version"] = cachefmt::k_unknown;
    expect_miss("driver.version");
    m_now.driver.clear();
    expect_miss("this process has no such value");
}

class JudgedDescent : public Judged {
protected:
    JudgedDescent()
    {
        m_stored.found_by = FoundBy::coordinate_descent;
        m_stored.config = {{"LANES", 2}, {"ROWS", 16}}; // this is not a candidate
        m_now.search = SearchMethod::coordinate_descent;
    }
};

TEST_F(JudgedDescent, ItsWinnerLiesOutsideTheCandidatesAndIsUsed) { expect(Use::winner); }

TEST_F(JudgedDescent, ItsWinnerIsNotUsedWhereDescentIsNotAskedFor)
{
    m_now.search = SearchMethod::enumerate;
    expect_miss("coordinate descent found it");
    m_stored.config = m_now.space.candidates[1];
    expect_miss("coordinate descent found it");
}

TEST_F(JudgedDescent, ItsWinnerIsHeldToTheDeclaredRanges)
{
    m_stored.config["LANES"] = 64;
    expect_miss("LANES=64 is outside");
    m_stored.config["LANES"] = 2;
    m_stored.config["ROWS"] = 3;
    expect_miss("ROWS=3 is outside");
    m_stored.config = {{"LANES", 2}};
    expect_miss("other parameters");
    m_stored.config = {{"LANES", 2}, {"ROWS", 16}};
    m_now.space.admits = [](const Configuration&) { return false; };
    expect_miss("does not admit");
}

} // namespace
} // namespace warmgraph::autotune::judge_test
