#include "eviction.hpp"

#include <algorithm>

#include "warmgraph/base/log.hpp"

namespace warmgraph::store {

Result<void> evict(const Disk& disk, const FunctionKey& function, const Digest& published)
{
    const auto digests = disk.entries_of(function);
    if (!digests) return std::unexpected(digests.error());
    const std::size_t limit = std::max<std::size_t>(disk.options.max_variants, 1);
    if (digests->size() <= limit) return {};

    std::vector<std::pair<std::chrono::system_clock::time_point, Digest>> others;
    for (const Digest& digest : *digests) {
        if (digest == published) continue;
        const auto info = disk.files.info(disk.layout.entry({function, digest}));
        if (!info) return std::unexpected(info.error());
        if (*info) others.emplace_back((*info)->modified, digest);
    }
    std::ranges::sort(others);
    for (std::size_t i = 0; i + limit <= others.size(); ++i) {
        const Path path = disk.layout.entry({function, others[i].second});
        if (auto removed = disk.files.remove(path); !removed) return removed;
        log().info("evicted {}: more than {} variants", disk.layout.relative(path).string(), limit);
    }
    return {};
}

} // namespace warmgraph::store
