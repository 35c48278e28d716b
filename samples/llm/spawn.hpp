// Runs a program and waits for it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace llm {

struct Command {
    std::filesystem::path program;
    std::vector<std::string> arguments;
    std::map<std::string, std::string> environment; ///< added to this process's variables, or replacing them
    std::filesystem::path output;                   ///< standard output goes to this file; empty: shared
    std::filesystem::path errors;                   ///< standard error goes to this file; empty: shared
};

/// Returns the exit code; 128 + n for a program that signal n ended. Throws std::system_error if the program cannot be
/// started.
[[nodiscard]] int run(const Command& command);

} // namespace llm
