#include "upkeep/eviction.hpp"

#include <algorithm>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph::store {

Result<Removal::Amount> evict(const Disk& disk, const FunctionKey& function, const Digest& published)
{
    const auto digests = disk.entries_of(function);
    if (!digests) return std::unexpected(digests.error());
    const std::size_t limit = std::max<std::size_t>(disk.options.max_variants, 1);
    Removal::Amount evicted;
    if (digests->size() <= limit) return evicted;

    struct Other {
        std::chrono::system_clock::time_point last_used;
        Digest digest;
        std::uint64_t size;
        auto operator<=>(const Other&) const = default;
    };
    std::vector<Other> others;
    for (const Digest& digest : *digests) {
        if (digest == published) continue;
        const auto info = disk.files.info(disk.layout.entry({function, digest}));
        if (!info) return std::unexpected(info.error());
        if (*info) others.push_back({(*info)->modified, digest, (*info)->size});
    }
    std::ranges::sort(others);
    for (std::size_t i = 0; i + limit <= others.size(); ++i) {
        const Path path = disk.layout.entry({function, others[i].digest});
        if (auto removed = disk.files.remove(path); !removed) return std::unexpected(removed.error());
        evicted += {1, others[i].size};
        log().info("evicted {}: more than {}", path.string(), plural(limit, "variant"));
    }
    return evicted;
}

} // namespace warmgraph::store
