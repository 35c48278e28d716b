// What the programs of this sample share around their work: options that mean the same, exit codes, and where a result goes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <warmgraph/warmgraph.hpp>

namespace CLI {
class App;
} // namespace CLI

namespace llm {

struct Config;

struct ProgramOptions {
    std::string cache_dir;
    std::string policy;
    std::vector<std::string> bundles;
    std::string weights; ///< empty: those that come with the sample
    std::string json;

    [[nodiscard]] bool is_for_people() const noexcept { return json != "-"; }
};

/// --cache-dir, --bundle, --policy, --weights and --json, and what the exit codes mean.
void declare(CLI::App& app, ProgramOptions& options);

/// Beside this program, or where an installation puts them: both move together with it.
[[nodiscard]] std::filesystem::path weights_of(const ProgramOptions& options);

/// For this model, with what the user chose.
[[nodiscard]] warmgraph::CacheOptions cache_options(const ProgramOptions& options, const Config& model);

/// To the file that --json names, or to standard output; nothing without one. std::runtime_error where it cannot be
/// written.
void write_json(const nlohmann::ordered_json& result, const ProgramOptions& options);

/// Reads the command line and runs `work`. The exit code: 0 done, 1 failed, 2 wrong usage, 3 a miss that the policy
/// forbids. What went wrong is on standard error.
[[nodiscard]] int run_program(CLI::App& app, const char* name, int argc, char** argv,
                              const std::function<void()>& work);

} // namespace llm
