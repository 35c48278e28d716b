// One case in one process.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>

#include "library_case.hpp"

namespace warmgraph::test::libraries {

enum class Mode : std::uint8_t { native, record, replay };
[[nodiscard]] std::string_view to_string(Mode mode) noexcept;
[[nodiscard]] std::optional<Mode> parse_mode(std::string_view text) noexcept;

inline constexpr unsigned k_limit_seconds = 120; ///< limit for one process, which SIGALRM ends

/// The findings of one process: <mode>.json in the case's folder.
struct Finding {
    std::string
        outcome{}; ///< outcome of the first call that the library's set-up did not spoil; empty: there was no such call
    std::string reason{};             ///< why it was not recorded or replayed
    std::vector<std::string> calls{}; ///< outcomes in order
    std::string difference{};         ///< difference from the native run; empty: equal
    std::string error{};              ///< text of the exception
    std::string lacking{};            ///< missing software or hardware, so that the case cannot run
    bool is_counting = false;         ///< Case::is_counting
};

/// Runs the case in this process. The native mode writes its results into `folder`; the other two compare theirs with
/// them. The record mode also leaves its cache there.
[[nodiscard]] Finding run_here(const Cases::Entry& entry, Mode mode, const std::filesystem::path& folder);

void write_finding(const Finding& finding, Mode mode, const std::filesystem::path& folder);
/// Returns nullopt when the process ended without a finding.
[[nodiscard]] std::optional<Finding> read_finding(Mode mode, const std::filesystem::path& folder);

} // namespace warmgraph::test::libraries
