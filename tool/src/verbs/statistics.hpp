// What `warmgraph stats` adds up, in each of its forms.
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
    std::string refusal{}; ///< why its last miss ran as it is, where it is refused
};

/// One kind of what the folder keeps.
struct KindStatistics {
    store::ArtifactKind kind = store::ArtifactKind::entries;
    store::Removal::Amount held;
    store::FunctionUsage usage; ///< of graphs: that of all functions
};

struct FolderStatistics {
    std::vector<FunctionStatistics> functions;
    std::uint64_t images = 0, image_bytes = 0; ///< of the whole folder
    std::vector<KindStatistics> kinds;         ///< the same
};

/// Prometheus' text format, version 0.0.4: HELP and TYPE before each family, labels escaped.
[[nodiscard]] std::string prometheus_text(const FolderStatistics& statistics);

} // namespace warmgraph::tool
