// What `warmgraph stats` adds up, in each of its forms.
#pragma once

#include <vector>

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::tool {

struct FunctionStatistics {
    cachefmt::FunctionKey key;
    store::FunctionUsage usage;
    std::uint64_t variants = 0, entry_bytes = 0;
};

struct FolderStatistics {
    std::vector<FunctionStatistics> functions;
    std::uint64_t images = 0, image_bytes = 0;      ///< of the whole folder
    std::uint64_t compiled = 0, compiled_bytes = 0; ///< programs, the same
};

/// Prometheus' text format, version 0.0.4: HELP and TYPE before each family, labels escaped.
[[nodiscard]] std::string prometheus_text(const FolderStatistics& statistics);

} // namespace warmgraph::tool
