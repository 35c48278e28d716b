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

inline constexpr unsigned k_limit_seconds = 120; ///< of one process; SIGALRM ends it then

/// What a process found out: <mode>.json in the case's folder.
struct Finding {
    std::string
        outcome{};        ///< of the first call that was not refused for what the library set up; empty: there was none
    std::string reason{}; ///< why it was not recorded or replayed
    std::vector<std::string> calls{}; ///< outcomes in order
    std::string difference{};         ///< from the native run; empty: none
    std::string error{};              ///< what was thrown
    std::string lacking{};            ///< what this machine has not, so that the case cannot run
    bool is_counting = false;         ///< Case::is_counting
};

/// Runs the case in this process. Native leaves its results in `folder`, the other two compare theirs with them; record also
/// leaves its cache there.
[[nodiscard]] Finding run_here(const Cases::Entry& entry, Mode mode, const std::filesystem::path& folder);

void write_finding(const Finding& finding, Mode mode, const std::filesystem::path& folder);
/// Nullopt where the process ended before it could say anything.
[[nodiscard]] std::optional<Finding> read_finding(Mode mode, const std::filesystem::path& folder);

} // namespace warmgraph::test::libraries
