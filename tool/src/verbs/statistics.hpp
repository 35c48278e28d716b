// The statistics of `warmgraph stats`, for all its output forms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/remote/lasting_counts.hpp"

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

struct RemoteStatistics {
    std::string word; ///< remote::word_of
    remote::RemoteTotal total;
    /// Objects with a mark; known only for the remotes of WARMGRAPH_REMOTE.
    std::optional<std::uint64_t> unsent{}, refused{};
};

struct FolderStatistics {
    std::vector<FunctionStatistics> functions;
    std::uint64_t images = 0, image_bytes = 0; ///< numbers for the whole folder
    std::vector<KindStatistics> kinds;         ///< statistics for the whole folder
    std::vector<RemoteStatistics> remotes{};   ///< those that the folder counted, and those of WARMGRAPH_REMOTE
};

/// The remotes' counters, and the numbers of marks in the folder.
[[nodiscard]] std::vector<RemoteStatistics> remote_statistics(const store::LocalStore& store);
[[nodiscard]] Json to_json(const RemoteStatistics& of);
[[nodiscard]] std::string remotes_text(const Context& context, const std::vector<RemoteStatistics>& remotes);

/// Prometheus' text format, version 0.0.4: HELP and TYPE before each family, labels escaped.
[[nodiscard]] std::string prometheus_text(const FolderStatistics& statistics);

} // namespace warmgraph::tool
