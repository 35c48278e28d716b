// Compares the model with golden.json, a reference that was computed independently in double precision. It runs without
// a cache, while it is recorded, and replayed. This test is built once for each backend.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "carried.hpp"
#include "generate.hpp"
#include "pocl_cache.hpp"
#include "temp_dir.hpp"
#include "tokenizer.hpp"

namespace llm::golden_test {
namespace {

namespace wg = warmgraph;

constexpr double k_tolerance = 1e-3; // the limit for max |a - b| / max |b|

struct Case {
    std::string prompt;
    std::vector<std::int32_t> prompt_tokens;
    std::vector<std::int32_t> generated_tokens;
    std::map<std::size_t, std::vector<float>> logits; ///< by the index of the token that was chosen from them
};

std::vector<Case> golden_cases()
{
    const nlohmann::json golden = nlohmann::json::parse(std::ifstream(carried(LLM_GOLDEN)));
    std::vector<Case> cases;
    for (const auto& entry : golden.at("cases")) {
        Case one{entry.at("prompt"), entry.at("prompt_tokens"), entry.at("generated_tokens"), {}};
        for (const auto& [step, logits] : entry.at("logits").items())
            one.logits[std::stoul(step)] = logits.get<std::vector<float>>();
        cases.push_back(std::move(one));
    }
    return cases;
}

double relative_difference(const std::vector<float>& actual, const std::vector<float>& expected)
{
    double difference = 0;
    double largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        // std::max would ignore a NaN, so this is checked first.
        if (!std::isfinite(actual.at(i))) return INFINITY;
        difference = std::max(difference, std::abs(double{actual[i]} - double{expected[i]}));
        largest = std::max(largest, std::abs(double{expected[i]}));
    }
    return difference / largest;
}

/// Decodes one case greedily. Expects that the logits of the stored steps, and the tokens, agree.
void expect_golden(Session& session, const Case& golden)
{
    SCOPED_TRACE("prompt '" + golden.prompt + "'");
    ASSERT_EQ(encode(golden.prompt), golden.prompt_tokens);
    std::vector<std::int32_t> tokens;
    std::vector<float> logits = session.prompt(golden.prompt_tokens);
    for (std::size_t step = 0; step < golden.generated_tokens.size(); ++step) {
        if (const auto kept = golden.logits.find(step); kept != golden.logits.end()) {
            EXPECT_LE(relative_difference(logits, kept->second), k_tolerance) << "step " << step;
        }
        tokens.push_back(argmax(logits));
        logits = session.decode(tokens.back(), static_cast<std::int32_t>(golden.prompt_tokens.size() + step));
    }
    EXPECT_EQ(tokens, golden.generated_tokens) << "got '" << decode(tokens) << "'";
}

class Golden : public testing::Test {
protected:
    static void SetUpTestSuite()
    {
        warmgraph::test::use_pocl_cache();
        // Must come first: the first test runs the model without a cache, and loads modules that later tests record.
        wg::Device{LLM_BACKEND}.prepare_recording();
    }

    [[nodiscard]] wg::Cache open(wg::Policy policy) const
    {
        wg::CacheOptions options;
        options.model = m_model.config().name;
        options.config = m_model.config().identity();
        options.cache_dir = m_folder.path() / "cache";
        options.policy = policy;
        return wg::Cache{options};
    }

    warmgraph::test::TempDir m_folder;
    wg::Device m_device{LLM_BACKEND};
    Model m_model{m_device, samples::Safetensors::read(carried(LLM_WEIGHTS))};
    std::vector<Case> m_cases = golden_cases();
};

TEST_F(Golden, LogitsAgreeWithoutTheCache)
{
    ASSERT_FALSE(m_cases.empty());
    wg::Cache cache = open(wg::Policy::off);
    Session session{m_device, m_model, cache};
    for (const Case& one : m_cases) expect_golden(session, one);
    EXPECT_EQ(session.prompt_report().outcome, wg::Outcome::eager);
    EXPECT_EQ(session.decode_report().outcome, wg::Outcome::eager);
}

TEST_F(Golden, LogitsAgreeWhileRecordingAndWhenReplayed)
{
    std::uint64_t recordings = 0;
    {
        wg::Cache cold = open(wg::Policy::read_write);
        Session session{m_device, m_model, cold};
        for (const Case& one : m_cases) expect_golden(session, one);
        EXPECT_EQ(session.prompt_report().outcome, wg::Outcome::recorded) << session.prompt_report().reason;
        EXPECT_EQ(session.decode_report().outcome, wg::Outcome::recorded) << session.decode_report().reason;
        recordings = cold.statistics().of(wg::ArtifactKind::entries).made;
        EXPECT_EQ(cold.statistics().of(wg::ArtifactKind::entries).refused, 0U);
    }
    wg::Cache warm = open(wg::Policy::require_hit);
    Session session{m_device, m_model, warm};
    for (const Case& one : m_cases) expect_golden(session, one);
    EXPECT_EQ(session.prompt_report().outcome, wg::Outcome::replayed);
    EXPECT_EQ(session.decode_report().outcome, wg::Outcome::replayed);
    EXPECT_EQ(warm.statistics().of(wg::ArtifactKind::entries).hits, recordings);
    EXPECT_EQ(warm.statistics().of(wg::ArtifactKind::entries).misses, 0U);
}

TEST_F(Golden, LogitsAgreeWithTunedGeometries)
{
    wg::Cache cache = open(wg::Policy::read_write);
    wg::Tuner tuner = cache.tuner(m_device, {.rounds = 1, .min_gain = 0, .batch_ms = 0});
    for (const wg::TuningReport& report : m_model.tune(tuner)) {
        EXPECT_EQ(report.outcome, wg::TuningOutcome::tuned) << report.reason;
        for (const wg::TuningTiming& timing : report.timings) EXPECT_EQ(timing.failed, "") << report.kernel;
    }
    Session session{m_device, m_model, cache};
    for (const Case& one : m_cases) expect_golden(session, one);
    EXPECT_EQ(session.prompt_report().outcome, wg::Outcome::recorded) << session.prompt_report().reason;
}

TEST_F(Golden, EveryBucketIsAVariantOfItsOwn)
{
    wg::Cache cold = open(wg::Policy::read_write);
    Session session{m_device, m_model, cold};
    std::uint64_t recordings = 0;
    for (const std::uint32_t bucket : k_buckets) {
        static_cast<void>(session.prompt(std::vector<std::int32_t>(bucket - 3, 'a')));
        EXPECT_EQ(cold.statistics().of(wg::ArtifactKind::entries).made, ++recordings) << bucket;
    }
    static_cast<void>(session.prompt({'a', 'b'})); // another length in the same bucket is no new variant
    EXPECT_EQ(cold.statistics().of(wg::ArtifactKind::entries).made, k_buckets.size());
}

TEST_F(Golden, PaddingAndWhatTheCacheHeldBeforeDoNotChangeTheLogits)
{
    wg::Cache cache = open(wg::Policy::read_write);
    Session session{m_device, m_model, cache};
    const Case& one = m_cases.front();
    static_cast<void>(session.prompt(std::vector<std::int32_t>(128, 'z'))); // fills the KV cache with other text
    expect_golden(session, one);
}

TEST_F(Golden, TheLastPositionIsReachedAndTheNextRefused)
{
    wg::Cache cache = open(wg::Policy::read_write);
    Session session{m_device, m_model, cache};
    std::vector<float> logits = session.prompt(m_cases.front().prompt_tokens);
    const std::size_t length = m_cases.front().prompt_tokens.size();
    const auto tokens = generate(session, std::move(logits), length, 1000, std::nullopt);
    EXPECT_EQ(tokens.size(), session.max_tokens() - length + 1); // the logits of the last token are at position max - 1
    EXPECT_THROW(static_cast<void>(session.decode('a', 256)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(session.decode('a', -1)), std::invalid_argument);
}

} // namespace
} // namespace llm::golden_test
