// The common parts of this sample's programs: options, exit codes, and output of results.
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
    std::string weights; ///< empty: the sample's own weights
    std::string json;

    [[nodiscard]] bool is_for_people() const noexcept { return json != "-"; }
};

/// Declares --cache-dir, --bundle, --policy, --weights and --json, and explains the exit codes.
void declare(CLI::App& app, ProgramOptions& options);

/// The weights file: beside this program, or in an installation's folder, which moves together with the program.
[[nodiscard]] std::filesystem::path weights_of(const ProgramOptions& options);

/// The cache options for this model from the user's options.
[[nodiscard]] warmgraph::CacheOptions cache_options(const ProgramOptions& options, const Config& model);

/// Writes to the file that --json names, or to standard output; without --json writes nothing. Throws
/// std::runtime_error when the file cannot be written.
void write_json(const nlohmann::ordered_json& result, const ProgramOptions& options);

/// Reads the command line and runs `work`. Returns the exit code: 0 done, 1 failed, 2 wrong usage, 3 a miss that the
/// policy forbids. Errors go to standard error.
[[nodiscard]] int run_program(CLI::App& app, const char* name, int argc, char** argv,
                              const std::function<void()>& work);

} // namespace llm
