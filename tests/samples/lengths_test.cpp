// Runs warmgraph_llm_lengths in new processes: 40 lengths need at most six recordings, and the second start needs none.
#include "process_fixture.hpp"

namespace llm::lengths_test {
namespace {

using testing::HasSubstr;

class Lengths : public Process {
protected:
    [[nodiscard]] nlohmann::json serve_lengths(std::vector<std::string> more = {})
    {
        more.insert(more.end(), {"--json", "-"});
        const ProcessResult ended = run_on_backend(carried(LLM_LENGTHS_BINARY), more);
        EXPECT_EQ(ended.code, 0) << ended.errors;
        return nlohmann::json::parse(ended.output, nullptr, false);
    }
};

TEST_F(Lengths, AreRecordedAsSixBucketsAtMostAndReplayedInTheSecondStart)
{
    const nlohmann::json cold = serve_lengths(), warm = serve_lengths({"--policy", "require_hit"});
    ASSERT_EQ(cold.at("calls").size(), 40U);
    ASSERT_EQ(warm.at("calls").size(), 40U);
    EXPECT_LE(cold.at("recordings"), 6);
    EXPECT_GE(cold.at("recordings"), 4) << "six are allowed, and pay";
    EXPECT_EQ(cold.at("recorded_ahead"), cold.at("recordings"));
    EXPECT_EQ(cold.at("problems"), nlohmann::json::array());
    EXPECT_EQ(entries_of("prompt_of_any_length").size(), cold.at("recordings").get<std::size_t>());
    EXPECT_EQ(warm.at("recordings"), 0);
    EXPECT_EQ(warm.at("misses"), 0);
    EXPECT_EQ(warm.at("buckets"), cold.at("buckets"));
    for (std::size_t i = 0; i < 40; ++i) {
        const auto &before = cold.at("calls")[i], &after = warm.at("calls")[i];
        EXPECT_EQ(before.at("outcome"), "eager");
        EXPECT_EQ(after.at("outcome"), "replayed");
        EXPECT_EQ(before.at("tokens"), after.at("tokens"));
        EXPECT_EQ(before.at("next"), after.at("next")) << after.at("tokens") << " tokens are answered alike";
        EXPECT_GE(after.at("ran"), after.at("tokens"));
        EXPECT_NE(std::ranges::find(warm.at("buckets"), after.at("ran")), warm.at("buckets").end());
    }
    EXPECT_LT(warm.at("padding"), 0.2);
    EXPECT_GT(warm.at("padding"), 0.0);
}

TEST_F(Lengths, ASecondStartThatMayRecordFindsAllThereToo)
{
    static_cast<void>(serve_lengths());
    const nlohmann::json again = serve_lengths();
    EXPECT_EQ(again.at("recordings"), 0);
    EXPECT_EQ(again.at("misses"), 0);
    EXPECT_EQ(again.at("replayed_ahead"), again.at("buckets").size());
}

TEST_F(Lengths, PrintHowMuchOfEachCallIsPadding)
{
    const ProcessResult ended = run_on_backend(carried(LLM_LENGTHS_BINARY), {});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_THAT(ended.output, HasSubstr("tokens    ran with    padding    outcome"));
    EXPECT_THAT(ended.output, HasSubstr("\n128            128        0 %      eager"));
    EXPECT_THAT(ended.output, HasSubstr("recorded ahead in"));
    EXPECT_EQ(run_on_backend(carried(LLM_LENGTHS_BINARY), {"--policy", "sometimes"}).code, 2);
}

TEST_F(Lengths, WithoutAProfileEachSizeIsAVariant)
{
    m_environment["WARMGRAPH_PROFILE"] = "off";
    fs::create_directories(cache()); // with the policy read_only, the folder is not made
    fs::permissions(cache(), fs::perms::owner_all);
    const nlohmann::json run = serve_lengths({"--policy", "read_only"}); // saves time: the 16 lengths are not recorded
    EXPECT_EQ(run.at("why_not"), "no profile is kept (CacheOptions::profile, WARMGRAPH_PROFILE)");
    EXPECT_EQ(run.at("buckets"), nlohmann::json::array());
    EXPECT_FALSE(fs::exists(cache() / "profile"));
}

} // namespace
} // namespace llm::lengths_test
