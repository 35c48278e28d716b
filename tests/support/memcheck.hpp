// Runs programs under memcheck, a tool of compute-sanitizer that checks every memory access of every kernel on the
// device.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace warmgraph::test {

/// A program ends with this status when memcheck has found an error.
inline constexpr int k_memcheck_status = 86;

/// The command that runs a program under memcheck; empty when compute-sanitizer is not installed. The tool uses CUPTI,
/// so the program can replay but not record. API errors are not reported: to find the end of a kernel's parameter list,
/// the library makes a query that fails. Padding separates allocations. The driver's allocations touch each other, so
/// without padding nobody would notice a read past the end of one.
[[nodiscard]] inline std::vector<std::string> memcheck()
{
    const auto of = [](const char* name) -> std::string {
        const char* const value = std::getenv(name);
        return value == nullptr ? "" : value;
    };
    std::istringstream places{of("PATH") + ":" + of("CUDA_HOME") + "/bin:/usr/local/cuda/bin"};
    for (std::string place; std::getline(places, place, ':');) {
        const auto tool = std::filesystem::path{place} / "compute-sanitizer";
        std::error_code ignored;
        if (tool.is_absolute() && std::filesystem::is_regular_file(tool, ignored))
            return {tool.string(),
                    "--tool",
                    "memcheck",
                    "--report-api-errors",
                    "no",
                    "--padding",
                    "4096",
                    "--error-exitcode",
                    std::to_string(k_memcheck_status)};
    }
    return {};
}

} // namespace warmgraph::test
