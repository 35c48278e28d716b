// Runs the real programs in real processes: cold, warm, and with a damaged or missing cache. This test is built once
// for each backend.
#include "process_fixture.hpp"

namespace llm::process_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Process, TheSecondProcessReplaysWhatTheFirstRecorded)
{
    const nlohmann::json cold = serve();
    const nlohmann::json warm = serve();
    for (const char* function : {"prompt", "decode"}) {
        EXPECT_EQ(outcome(cold, function), "recorded") << cold.at("functions").at(function).at("reason");
        EXPECT_EQ(outcome(warm, function), "replayed") << warm.at("functions").at(function).at("reason");
        EXPECT_FALSE(warm.at("functions").at(function).at("phases").contains("compile"));
    }
    EXPECT_TRUE(cold.at("functions").at("prompt").at("phases").contains("compile"));
    EXPECT_EQ(warm.at("text"), cold.at("text"));
    EXPECT_EQ(warm.at("tokens"), cold.at("tokens"));
    EXPECT_EQ(cold.at("hits"), 0);
    EXPECT_EQ(cold.at("misses"), 2);
    EXPECT_EQ(warm.at("hits"), 2);
    EXPECT_EQ(warm.at("misses"), 0);
    EXPECT_GT(warm.at("time_to_first_token_ms"), 0.0); // the benchmark measures how much shorter this time is
}

TEST_F(Process, JsonHasEveryFieldThatIsDocumented)
{
    const nlohmann::json run = serve();
    EXPECT_THAT(run.at("text").get<std::string>(), StartsWith("Once upon a time"));
    EXPECT_EQ(run.at("tokens").size(),
              run.at("text").get<std::string>().size() - std::string("Once upon a time").size());
    for (const char* number : {"time_to_first_token_ms", "time_to_first_token_with_context_ms", "hits", "misses"}) {
        EXPECT_TRUE(run.at(number).is_number()) << number;
    }
    EXPECT_TRUE(run.at("phases").at("context").is_number());
    EXPECT_TRUE(run.at("phases").at("weights").is_number());
    EXPECT_TRUE(run.at("tuning_ms").is_number());
    EXPECT_EQ(run.at("tuning"), nlohmann::json::object()) << "it was not asked for";
    EXPECT_EQ(run.at("miss_reasons").size(), 2U);
    EXPECT_THAT(run.at("summary").get<std::string>(), StartsWith("warmgraph: 0 hits, 2 misses"));
    EXPECT_GT(run.at("time_to_first_token_with_context_ms"), run.at("time_to_first_token_ms"));
    for (const char* function : {"prompt", "decode"}) {
        const nlohmann::json& report = run.at("functions").at(function);
        EXPECT_TRUE(report.at("reason").is_string());
        EXPECT_GT(report.at("first_call_ms"), 0.0);
        EXPECT_GT(report.at("steady_call_us"), 0.0);
        ASSERT_TRUE(report.at("phases").is_object());
        EXPECT_FALSE(report.at("phases").empty());
        for (const auto& phase : report.at("phases")) EXPECT_GE(phase, 0.0);
    }
}

TEST_F(Process, PrintsTheTextATableAndTheSummaryLast)
{
    const ProcessResult ended = llm({"--tokens", "8", "--json", (m_folder.path() / "run.json").string()});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_THAT(ended.output, StartsWith("Once upon a time"));
    EXPECT_THAT(ended.output, HasSubstr("\nfirst call "));
    EXPECT_THAT(ended.output, testing::Not(HasSubstr("\033"))); // a file must not get codes for colours
    const std::string summary = nlohmann::json::parse(content_of(m_folder.path() / "run.json")).at("summary");
    EXPECT_THAT(ended.output, testing::EndsWith("\n" + summary + "\n"));
}

TEST_F(Process, RequireHitRefusesAnEmptyCache)
{
    const ProcessResult ended = llm({"--policy", "require_hit"});
    EXPECT_EQ(ended.code, 3);
    EXPECT_THAT(ended.errors,
                HasSubstr("warmgraph_llm: 'prompt' must hit (policy require_hit), but there is no usable entry"));
    EXPECT_EQ(ended.output, "");
}

TEST_F(Process, RequireHitAcceptsAWarmCache)
{
    static_cast<void>(serve());
    const nlohmann::json warm = serve({"--policy", "require_hit"});
    EXPECT_EQ(outcome(warm, "prompt"), "replayed");
    EXPECT_EQ(outcome(warm, "decode"), "replayed");
}

TEST_F(Process, PolicyOffLeavesNoTraceAndTellsTheSameStory)
{
    const nlohmann::json off = serve({"--policy", "off"});
    EXPECT_EQ(outcome(off, "decode"), "eager");
    EXPECT_TRUE(!fs::exists(cache()) || fs::is_empty(cache()));
    EXPECT_EQ(serve().at("text"), off.at("text"));
}

TEST_F(Process, ADamagedEntryIsRecordedAgain)
{
    const nlohmann::json cold = serve();
    const std::vector<fs::path> entries = entries_of("decode");
    ASSERT_FALSE(entries.empty());
    for (const fs::path& entry : entries) {
        std::fstream file(entry, std::ios::binary | std::ios::in | std::ios::out);
        const auto middle = static_cast<std::streamoff>(fs::file_size(entry) / 2);
        file.seekg(middle);
        const char byte = static_cast<char>(file.get() ^ 0x10);
        file.seekp(middle);
        file.put(byte);
        ASSERT_TRUE(file.flush()) << entry;
    }
    const nlohmann::json damaged = serve();
    EXPECT_EQ(damaged.at("text"), cold.at("text"));
    EXPECT_EQ(outcome(damaged, "prompt"), "replayed");
    EXPECT_EQ(outcome(damaged, "decode"), "recorded");
    EXPECT_EQ(damaged.at("miss_reasons").size(), 1U);

    const nlohmann::json healed = serve();
    EXPECT_EQ(outcome(healed, "decode"), "replayed");
    EXPECT_EQ(healed.at("text"), cold.at("text"));
}

TEST_F(Process, ATruncatedImageIsMadeAgain)
{
    const nlohmann::json cold = serve();
    int images = 0;
    for (const auto& image : fs::recursive_directory_iterator(cache() / "images")) {
        if (!image.is_regular_file()) continue;
        fs::resize_file(image.path(), image.file_size() / 2);
        ++images;
    }
    ASSERT_GT(images, 0);
    const nlohmann::json damaged = serve();
    EXPECT_EQ(damaged.at("text"), cold.at("text"));
    EXPECT_EQ(outcome(damaged, "prompt"), "recorded");
    EXPECT_EQ(outcome(serve(), "prompt"), "replayed");
}

TEST_F(Process, WrongUsageAndWrongWeightsAreErrorsWithACure)
{
    EXPECT_EQ(llm({"--policy", "sometimes"}).code, 2);
    EXPECT_EQ(llm({"--tokens", "0"}).code, 2);
    const ProcessResult missing = llm({"--weights", "/nowhere"});
    EXPECT_EQ(missing.code, 1);
    // Before this text, the driver may have printed a warning.
    EXPECT_THAT(missing.errors,
                EndsWith("warmgraph_llm: safetensors: cannot open '/nowhere'; name the weights with --weights\n"));
    const ProcessResult prompt = llm({"--prompt", std::string(129, 'a')});
    EXPECT_EQ(prompt.code, 1);
    EXPECT_THAT(prompt.errors, EndsWith("warmgraph_llm: the prompt has 129 bytes, at most 128 are possible\n"));
    const ProcessResult device = llm({"--device", "no such device"});
    EXPECT_EQ(device.code, 1);
    EXPECT_THAT(device.errors, HasSubstr("no such device"));
}

TEST_F(Process, TheDemoComparesAColdAndAWarmStart)
{
    const fs::path kept = m_folder.path() / "kept";
    const ProcessResult ended = demo({"--tokens", "20", "--json", "--keep", kept.string()});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    const nlohmann::json both = nlohmann::json::parse(ended.output);
    EXPECT_TRUE(both.at("same_text").get<bool>());
    EXPECT_TRUE(both.at("fully_replayed").get<bool>());
    EXPECT_GT(both.at("first_token_ratio"), 0.0);
    EXPECT_EQ(outcome(both.at("cold"), "prompt"), "recorded");
    EXPECT_EQ(outcome(both.at("warm"), "prompt"), "replayed");

    // The cache of the first run still exists, so a second run would not be cold.
    const ProcessResult again = demo({"--keep", kept.string()});
    EXPECT_EQ(again.code, 1);
    EXPECT_THAT(again.errors, HasSubstr("is not empty"));
}

TEST_F(Process, TheDemoPrintsATableForPeople)
{
    const ProcessResult ended = demo({"--tokens", "20"});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_THAT(ended.output, StartsWith("cold: Once upon a time"));
    for (const char* row : {"\nwarm: the same text\n", "\ncontext ", "\n  compile ", "\n  load ", "\nfirst token ",
                            "\ncold  warmgraph: 0 hits", "\nwarm  warmgraph: 2 hits, 0 misses"}) {
        EXPECT_THAT(ended.output, HasSubstr(row));
    }
}

// Tuning itself takes many starts. This test only checks what later starts do.
TEST_F(Process, OnlyTheFirstStartTimesGeometries)
{
    const nlohmann::json cold = serve({"--tune", "enumerate"});
    const nlohmann::json warm = serve({"--tune", "enumerate"});
    ASSERT_FALSE(cold.at("tuning").empty());
    for (const auto& [kernel, tuned] : cold.at("tuning").items()) {
        SCOPED_TRACE(kernel);
        EXPECT_EQ(tuned.at("outcome"), "tuned") << tuned.at("reason");
        EXPECT_GT(tuned.at("timings").size(), 3U);
        for (const auto& timing : tuned.at("timings")) EXPECT_FALSE(timing.contains("failed")) << timing;
        EXPECT_GE(tuned.at("gain"), 1.0);
        const nlohmann::json& read = warm.at("tuning").at(kernel);
        EXPECT_EQ(read.at("outcome"), "stored") << read.at("reason");
        EXPECT_EQ(read.at("config"), tuned.at("config"));
        EXPECT_EQ(read.at("gain"), tuned.at("gain"));
        EXPECT_LT(read.at("took_ms").get<double>() * 10, tuned.at("took_ms"));
    }
    for (const char* function : {"prompt", "decode"}) {
        EXPECT_EQ(outcome(warm, function), "replayed") << warm.at("functions").at(function).at("reason");
        EXPECT_FALSE(warm.at("functions").at(function).at("phases").contains("compile"));
    }
    EXPECT_EQ(warm.at("text"), cold.at("text"));
    // A geometry is a part of the code's identity. So a start without tuning finds no entry.
    const nlohmann::json untuned = serve();
    EXPECT_TRUE(untuned.at("tuning").empty());
    EXPECT_EQ(outcome(untuned, "decode"), "recorded");
    EXPECT_EQ(untuned.at("text"), cold.at("text"));
}

TEST_F(Process, TheDemoShowsWhatTuningGains)
{
    const ProcessResult ended = demo({"--tokens", "20", "--tune", "enumerate"});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_THAT(ended.output, HasSubstr("\ntuning "));
    EXPECT_THAT(ended.output, testing::ContainsRegex("\n  one layer [ 0-9us]+ [0-9.]+x\n"));
    EXPECT_THAT(ended.output, testing::ContainsRegex("\nllm[a-z-]* +default +[A-Z_]+=[0-9]+ .* +stored"));
}

TEST_F(Process, RunsFromAnyFolderThatItsFilesWereMovedTo)
{
    const fs::path moved = m_folder.path() / "moved";
    const fs::path folder = carried(LLM_BINARY).parent_path();
    fs::create_directories(moved);
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("warmgraph_llm") || name.starts_with("lib") || name.ends_with(".safetensors")) {
            if (entry.is_regular_file()) fs::copy(entry.path(), moved / name);
        }
    }
    const ProcessResult ended = run_on_backend(moved / "warmgraph_llm_demo", {"--tokens", "4", "--json"});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_TRUE(nlohmann::json::parse(ended.output).at("fully_replayed").get<bool>());

    fs::remove(moved / "tiny-llama.safetensors");
    const ProcessResult without = run_on_backend(moved / "warmgraph_llm", {"--tokens", "4"});
    EXPECT_EQ(without.code, 1);
    EXPECT_THAT(without.errors, HasSubstr((moved / "tiny-llama.safetensors").string()));
}

} // namespace
} // namespace llm::process_test
