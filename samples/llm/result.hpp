// The result of one run of warmgraph_llm, for people and for machines.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "generate.hpp"
#include "table.hpp"
#include <warmgraph/warmgraph.hpp>

namespace llm {

struct FunctionResult {
    warmgraph::Report report;
    CallTimes times;
};

struct Result {
    std::string text; ///< prompt and continuation
    std::vector<std::int32_t> tokens;
    double context_ms = 0;     ///< opening the device
    double weights_ms = 0;     ///< reading and uploading the weights
    double first_token_ms = 0; ///< the time from the open device with its weights to the first logits on the host
    double first_token_with_context_ms = 0; ///< the time from the start of main() to the first logits on the host
    double recording_ms = 0;                ///< recording missed calls for later starts, after the story
    double tuning_ms = 0;                   ///< part of first_token_ms: timing geometries, or reading the best ones
    std::vector<warmgraph::TuningReport> tuning; ///< reports by program; empty without tuning
    std::vector<FunctionResult> functions;       ///< prompt, and decode if it was called
    warmgraph::Statistics statistics;
    std::string summary;
};

/// Returns e.g. "llm-decode: LANES=1 ROWS=16 (enumeration, stored), 1.83x the default's speed".
[[nodiscard]] std::string to_text(const warmgraph::TuningReport& report);

[[nodiscard]] nlohmann::ordered_json to_json(const Result& result);
/// A table with the phases of both functions side by side, and the process's other times.
[[nodiscard]] Table to_table(const Result& result);

/// Merges two lists of names: `first` in its order, and each name that only `second` has, behind the name that precedes
/// it in `second`.
[[nodiscard]] std::vector<std::string> merged(std::vector<std::string> first, const std::vector<std::string>& second);

} // namespace llm
