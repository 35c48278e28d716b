// Runs cases as child processes of this program, and collects a table of results.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "library_case.hpp"

namespace warmgraph::test::libraries {

enum class Verdict : std::uint8_t {
    equal,    ///< recorded, and replayed in another process with the native results
    refused,  ///< refused with a reason; the caller's results were the native ones
    wrong,    ///< another result than the native one, or a process that ended without a result
    unproven, ///< the native run itself failed: there are no results to compare with
    lacking,  ///< this machine lacks the library, or its device lacks the instruction
};
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

struct Row {
    std::string name;
    Verdict verdict = Verdict::unproven;
    bool is_native_run = false, is_recorded = false, is_replayed_equal = false;
    std::string reason{};             ///< complete reason of a refusal or a failure
    std::vector<std::string> calls{}; ///< outcomes in the recording process
    std::string log{};                ///< the end of the failed process's output
};

/// Runs a case in three processes, one after the other. `folder` is for this case alone.
[[nodiscard]] Row run_case(const Cases::Entry& entry, const std::filesystem::path& folder);

[[nodiscard]] std::string to_table(std::span<const Row> rows, const Cases& cases);
[[nodiscard]] std::string to_json(std::span<const Row> rows, const Cases& cases);

} // namespace warmgraph::test::libraries
