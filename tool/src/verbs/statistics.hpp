// The statistics of `warmgraph stats`, for all its output forms.
#pragma once

#include <string>
#include <vector>

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::tool {

struct FunctionStatistics {
    cachefmt::FunctionKey key;
    store::FunctionUsage usage;
    std::uint64_t variants = 0, entry_bytes = 0;
    std::string refusal{}; ///< why the function's last call ran uncached, if it is refused
};

struct KindStatistics {
    store::ArtifactKind kind = store::ArtifactKind::entries;
    store::Removal::Amount held;
    store::FunctionUsage usage; ///< usage of entries: the sum of all functions
};

struct FolderStatistics {
    std::vector<FunctionStatistics> functions;
    std::uint64_t images = 0, image_bytes = 0; ///< numbers for the whole folder
    std::vector<KindStatistics> kinds;         ///< statistics for the whole folder
};

/// Prometheus' text format, version 0.0.4: HELP and TYPE before each family, labels escaped.
[[nodiscard]] std::string prometheus_text(const FolderStatistics& statistics);

} // namespace warmgraph::tool
