// compute-sanitizer's memcheck: every access of every kernel, checked on the device.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace warmgraph::test {

/// What a program under memcheck ends with where that finds an error.
inline constexpr int k_memcheck_status = 86;

/// The command that runs a program under memcheck; empty where compute-sanitizer is not installed. The tool holds CUPTI, so
/// that what runs under it can replay and not record. API errors are left out, because the end of a kernel's parameter list is
/// found by a query that fails. Padding keeps allocations apart: the driver's lie beside each other, and what is read behind
/// the end of one is then the next one's.
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
