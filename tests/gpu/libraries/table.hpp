// Cases as child processes of this program, and what came of them as a table.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "library_case.hpp"

namespace warmgraph::test::libraries {

enum class Verdict : std::uint8_t {
    equal,    ///< recorded, and replayed as the native run in another process
    refused,  ///< with a reason; the caller's results were the native ones
    wrong,    ///< a result that is not the native one, or a process that ended without one
    unproven, ///< the native run itself failed: nothing to compare with
    lacking,  ///< this machine has no such library, or its device has no such instruction
};
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

struct Row {
    std::string name;
    Verdict verdict = Verdict::unproven;
    bool is_native_run = false, is_recorded = false, is_replayed_equal = false;
    std::string reason{};             ///< of a refusal or a failure, whole
    std::vector<std::string> calls{}; ///< outcomes in the recording process
    std::string log{};                ///< the end of what the process that failed wrote
};

/// Runs a case in three processes, one after the other. `folder` is the case's own.
[[nodiscard]] Row run_case(const Cases::Entry& entry, const std::filesystem::path& folder);

[[nodiscard]] std::string to_table(std::span<const Row> rows, const Cases& cases);
[[nodiscard]] std::string to_json(std::span<const Row> rows, const Cases& cases);

} // namespace warmgraph::test::libraries
