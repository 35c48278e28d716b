// Starts programs, so that each measurement of a new process runs in a new process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace warmgraph::bench {

/// The path of a program of this build: beside this program if it is there (on another machine), else its build path.
[[nodiscard]] std::filesystem::path program_of(const std::filesystem::path& built);

/// Runs a program that writes its result to the file behind `--json`, with an empty kernel cache of PoCL and CUDA's JIT
/// cache off. Throws std::runtime_error with the exit code when it fails; its output is on standard error.
[[nodiscard]] nlohmann::json result_of(const std::filesystem::path& program, std::vector<std::string> arguments);

/// Starts this program again with `--child NAME ARGUMENTS...` (children.hpp).
[[nodiscard]] nlohmann::json child(const std::string& name, std::vector<std::string> arguments);

} // namespace warmgraph::bench
