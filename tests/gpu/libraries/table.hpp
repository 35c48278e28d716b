// Runs cases as child processes of this program, and collects a table of results.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "library_case.hpp"

namespace warmgraph::test::libraries {

enum class Verdict : std::uint8_t {
    equal,    ///< the work was recorded, and another process replayed it with the native results
    refused,  ///< the work was refused with a reason, and the caller got the native results
    wrong,    ///< a result differs from the native one, or a process ended without a result
    unproven, ///< the native run itself failed, so there are no results to compare with
    lacking,  ///< the library is missing on this machine, or the device lacks an instruction
};
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

struct Row {
    std::string name;
    Verdict verdict = Verdict::unproven;
    bool is_native_run = false, is_recorded = false, is_replayed_equal = false;
    std::string reason{};             ///< the complete reason of a refusal or a failure
    std::vector<std::string> calls{}; ///< the outcomes in the recording process
    std::string log{};                ///< the end of the output of a process that failed
};

/// Runs a case in three processes, one after the other. No other case may use `folder`.
[[nodiscard]] Row run_case(const Cases::Entry& entry, const std::filesystem::path& folder);

[[nodiscard]] std::string to_table(std::span<const Row> rows, const Cases& cases);
[[nodiscard]] std::string to_json(std::span<const Row> rows, const Cases& cases);

} // namespace warmgraph::test::libraries
