// Programs that a benchmark starts: what a fresh process does is measured in a fresh process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace warmgraph::bench {

/// A program of this build: beside this one when both were carried to another machine, else where it was built.
[[nodiscard]] std::filesystem::path program_of(const std::filesystem::path& built);

/// Runs a program that writes its result to the file behind `--json`, with PoCL's kernel cache empty and CUDA's JIT cache
/// off. std::runtime_error with the exit code where it fails; what it said is on standard error.
[[nodiscard]] nlohmann::json result_of(const std::filesystem::path& program, std::vector<std::string> arguments);

/// This program again, as `--child NAME ARGUMENTS...` (children.hpp).
[[nodiscard]] nlohmann::json child(const std::string& name, std::vector<std::string> arguments);

} // namespace warmgraph::bench
