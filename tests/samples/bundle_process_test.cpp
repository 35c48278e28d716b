// The command makes a bundle of the sample's cache. The bundle is read without unpacking it, and loaded into an empty
// folder.
#include "process_fixture.hpp"

namespace llm::bundle_process_test {
namespace {

/// A text whose length is in a bucket that the first start did not record.
constexpr const char* k_new = "Once upon a time there was a little fox who lived near water";

class BundleProcess : public Process {
protected:
    [[nodiscard]] nlohmann::json serve_new(const std::vector<std::string>& more = {})
    {
        std::vector<std::string> arguments{"--prompt", k_new, "--tokens", "8", "--json", "-"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProcessResult ended = llm(arguments);
        EXPECT_EQ(ended.code, 0) << ended.errors;
        return nlohmann::json::parse(ended.output, nullptr, false);
    }
};

TEST_F(BundleProcess, ANewShapeCompilesNothingWhereABundleHasItsPrograms)
{
    EXPECT_GT(serve().at("programs_compiled"), 0);
    const std::string bundle = (m_folder.path() / "cache.wgb").string();
    const ProcessResult made =
        run(carried(WARMGRAPH_COMMAND), {"bundle", "create", bundle, "--cache-dir", cache().string()});
    ASSERT_EQ(made.code, 0) << made.errors;
    fs::remove_all(cache());
    const nlohmann::json layered = serve_new({"--bundle", bundle});
    EXPECT_EQ(outcome(layered, "prompt"), "recorded");
    EXPECT_EQ(outcome(layered, "decode"), "replayed");
    EXPECT_EQ(layered.at("programs_compiled"), 0);
    fs::remove_all(cache());
    const ProcessResult loaded =
        run(carried(WARMGRAPH_COMMAND), {"bundle", "load", bundle, "--cache-dir", cache().string()});
    ASSERT_EQ(loaded.code, 0) << loaded.output << loaded.errors;
    const nlohmann::json filled = serve_new();
    EXPECT_EQ(outcome(filled, "prompt"), "recorded");
    EXPECT_EQ(outcome(filled, "decode"), "replayed");
    EXPECT_EQ(filled.at("programs_compiled"), 0);
    EXPECT_EQ(filled.at("text"), layered.at("text"));
}

} // namespace
} // namespace llm::bundle_process_test
