// Runs one case in one process.
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

inline constexpr unsigned k_limit_seconds = 120; ///< seconds after which SIGALRM ends a process

/// The findings of one process. They are stored as <mode>.json in the case's folder.
struct Finding {
    std::string
        outcome{}; ///< outcome of the first call that the library's set-up did not spoil; empty: there was no such call
    std::string reason{};             ///< why the call was not recorded or not replayed
    std::vector<std::string> calls{}; ///< the outcomes of all calls, in order
    std::string difference{};         ///< how the results differ from the native run; empty: they are equal
    std::string error{};              ///< the text of an exception
    std::string lacking{};            ///< the software or hardware that is missing, so that the case cannot run
    bool is_counting = false;         ///< the same as Case::is_counting
};

/// Runs the case in this process. The native mode writes its results into `folder`; the other modes compare their
/// results with these. The record mode also leaves its cache in the folder.
[[nodiscard]] Finding run_here(const Cases::Entry& entry, Mode mode, const std::filesystem::path& folder);

void write_finding(const Finding& finding, Mode mode, const std::filesystem::path& folder);
/// Reads the findings of a process. Returns nullopt when the process ended without writing them.
[[nodiscard]] std::optional<Finding> read_finding(Mode mode, const std::filesystem::path& folder);

} // namespace warmgraph::test::libraries
