// Tests that a warm process on CUDA never uses certain libraries and files.
#include "lacking.hpp"
#include "memcheck.hpp"
#include "process_fixture.hpp"

namespace llm::cuda_process_test {
namespace {

using testing::HasSubstr;

TEST_F(Process, AWarmStartNeedsNoCompilerNoProductLibraryAndNoProfiler)
{
    const nlohmann::json cold = serve();
    m_environment = {
        {"WARMGRAPH_NVRTC", "/nowhere/a"}, {"WARMGRAPH_CUBLASLT", "/nowhere/b"}, {"WARMGRAPH_CUPTI", "/nowhere/c"}};
    const nlohmann::json warm = serve({"--policy", "require_hit"});
    EXPECT_EQ(outcome(warm, "prompt"), "replayed");
    EXPECT_EQ(outcome(warm, "decode"), "replayed");
    EXPECT_EQ(warm.at("text"), cold.at("text"));
    EXPECT_EQ(warm.at("tokens"), cold.at("tokens"));

    // A cold start needs them. So this shows that the settings above take effect.
    const std::string empty = (m_folder.path() / "empty").string();
    const ProcessResult without_compiler = llm({"--cache-dir", empty});
    EXPECT_EQ(without_compiler.code, 1);
    EXPECT_THAT(without_compiler.errors, HasSubstr("/nowhere/a"));
    m_environment.erase("WARMGRAPH_NVRTC");
    const ProcessResult without_products = llm({"--cache-dir", empty, "--policy", "off"});
    EXPECT_EQ(without_products.code, 1);
    EXPECT_THAT(without_products.errors, HasSubstr("WARMGRAPH_CUBLASLT"));
}

TEST_F(Process, AWarmStartIsCleanUnderMemcheck)
{
    const std::vector<std::string> tool = warmgraph::test::memcheck();
    if (tool.empty()) WARMGRAPH_SKIP_LACKING("compute-sanitizer");
    const std::vector<std::string> arguments{"--backend",        LLM_BACKEND, "--prompt",
                                             "Once upon a time", "--tokens",  "40"};
    const ProcessResult cold = run(carried(LLM_BINARY), arguments);
    ASSERT_EQ(cold.code, 0) << cold.errors;
    std::vector<std::string> checked{tool.begin() + 1, tool.end()};
    checked.push_back(carried(LLM_BINARY).string());
    checked.insert(checked.end(), arguments.begin(), arguments.end());
    checked.insert(checked.end(), {"--policy", "require_hit"});
    const ProcessResult warm = run(tool.front(), checked);
    EXPECT_EQ(warm.code, 0) << warm.output << warm.errors;
    EXPECT_THAT(warm.output, HasSubstr("ERROR SUMMARY: 0 errors"));
}

TEST_F(Process, ADeviceThatNamesItsBackendNeedsNoOtherOption)
{
    const ProcessResult ended = run(carried(LLM_BINARY), {"--device", "cuda:0", "--tokens", "8", "--policy", "off"});
    EXPECT_EQ(ended.code, 0) << ended.errors;
}

} // namespace
} // namespace llm::cuda_process_test
