// Starts the real programs in new processes. Each test has its own cache.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "carried.hpp"
#include "matchers.hpp"
#include "spawn.hpp"
#include "temp_dir.hpp"

namespace llm {

namespace fs = std::filesystem;

inline std::string content_of(const fs::path& path)
{
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

struct ProcessResult {
    int code = 0;
    std::string output;
    std::string errors;
};

class Process : public testing::Test {
protected:
    /// Runs a program with this test's cache folder. It uses the PoCL cache that all tests share, or an empty PoCL
    /// cache when `m_compiles` is set. PoCL's cache is never off: PoCL 3.1 sometimes aborts when it removes the files
    /// of an uncached program ("Can't get stat() on ...").
    [[nodiscard]] ProcessResult run(const fs::path& program, std::vector<std::string> arguments)
    {
        const std::string number = std::to_string(++m_runs);
        const fs::path own = m_folder.path() / ("pocl" + number);
        const char* const shared = std::getenv("POCL_CACHE_DIR");
        const fs::path pocl = m_compiles || shared == nullptr ? own : fs::path(shared);
        fs::create_directories(pocl);
        Command command{
            program, std::move(arguments), {}, m_folder.path() / ("out" + number), m_folder.path() / ("err" + number)};
        command.environment = {{"POCL_KERNEL_CACHE", "1"},
                               {"POCL_CACHE_DIR", pocl.string()},
                               {"CUDA_CACHE_DISABLE", "1"},
                               {"WARMGRAPH_CACHE_DIR", cache().string()},
                               {"WARMGRAPH_POLICY", "read_write"}};
        command.environment.insert(m_environment.begin(), m_environment.end());
        const int code = llm::run(command);
        return {code, content_of(command.output), content_of(command.errors)};
    }
    /// Runs a program in the same way, on this test's backend.
    [[nodiscard]] ProcessResult run_on_backend(const fs::path& program, const std::vector<std::string>& arguments)
    {
        std::vector<std::string> all{"--backend", LLM_BACKEND};
        all.insert(all.end(), arguments.begin(), arguments.end());
        return run(program, std::move(all));
    }
    [[nodiscard]] ProcessResult llm(const std::vector<std::string>& arguments)
    {
        return run_on_backend(carried(LLM_BINARY), arguments);
    }
    [[nodiscard]] ProcessResult demo(const std::vector<std::string>& arguments)
    {
        return run_on_backend(carried(LLM_DEMO_BINARY), arguments);
    }

    /// Starts the service once. Returns the JSON that it prints.
    [[nodiscard]] nlohmann::json serve(const std::vector<std::string>& more = {})
    {
        std::vector<std::string> arguments{"--prompt", "Once upon a time", "--tokens", "40", "--json", "-"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProcessResult ended = llm(arguments);
        EXPECT_EQ(ended.code, 0) << ended.errors;
        return nlohmann::json::parse(ended.output, nullptr, false);
    }

    [[nodiscard]] fs::path cache() const { return m_folder.path() / "cache"; }
    /// The entry files of one function.
    [[nodiscard]] std::vector<fs::path> entries_of(const std::string& function) const
    {
        std::vector<fs::path> entries;
        for (const auto& entry : fs::recursive_directory_iterator(cache())) {
            if (entry.path().extension() == ".wg" && entry.path().parent_path().filename() == function)
                entries.push_back(entry.path());
        }
        return entries;
    }

    warmgraph::test::TempDir m_folder;
    std::map<std::string, std::string> m_environment; ///< further environment variables for later runs
    bool m_compiles = false;                          ///< whether later runs compile, for comparing their times
    int m_runs = 0;
};

inline std::string outcome(const nlohmann::json& run, const char* function)
{
    return run.at("functions").at(function).at("outcome");
}

} // namespace llm
