#include "warmgraph/capture/shadow_set.hpp"

#include <algorithm>
#include <map>

#include "model/alignment.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph {

namespace {
constexpr std::uint64_t k_alignment = cachefmt::k_max_alignment;
} // namespace

ShadowSet::~ShadowSet()
{
    for (const auto& memory : m_owned) m_device.release(memory);
}

Result<MemoryRef> ShadowSet::make(const Address& like, std::uint64_t size)
{
    const bool on_host = m_device.space_of(like) == backends::MemorySpace::host;
    auto memory = on_host ? m_device.recording().reserve_host_shadow(size) : m_device.reserve_shadow(size);
    if (!memory) return within("reserve addresses to capture with", memory.error());
    m_owned.push_back(*memory);
    return memory;
}

namespace {

/// The tensors that share a range, and the offsets where they begin and end in the call.
struct Cluster {
    std::vector<std::size_t> members;
    std::uint64_t low = ~std::uint64_t{0}, high = 0; ///< offsets of the first byte and of the end
    std::vector<std::uint64_t> starts;               ///< starts of the members, relative to `low`
    void add(std::size_t member, std::uint64_t from, std::uint64_t extent)
    {
        members.push_back(member);
        low = std::min(low, from);
        high = std::max(high, from + extent);
    }
};

/// In bytes. A tensor that is placed this far behind another tensor keeps its alignment. The two overlap if both are
/// larger than this step.
constexpr std::uint64_t k_small_step = k_alignment;

void arrange(Cluster& cluster, const Frame& frame, ShadowGrouping grouping)
{
    for (std::size_t i = 0; i < cluster.members.size(); ++i) {
        const std::uint64_t from = frame.memory[cluster.members[i]].address.offset - cluster.low;
        cluster.starts.push_back(grouping == ShadowGrouping::groups_equal   ? 0
                                 : grouping == ShadowGrouping::groups_steps ? i * k_small_step
                                                                            : from);
    }
    if (grouping == ShadowGrouping::groups_steps) cluster.high += cluster.members.size() * k_small_step;
}

std::vector<Cluster> clusters_of(const Frame& frame, ShadowGrouping grouping)
{
    std::map<std::uint32_t, Cluster> clusters;
    const auto groups = guards::alias_groups(frame.tensors);
    for (std::size_t i = 0; i < groups.size(); ++i) {
        Cluster& cluster = clusters[grouping == ShadowGrouping::tensors ? static_cast<std::uint32_t>(i) : groups[i]];
        cluster.add(i, frame.memory[i].address.offset, guards::extent_bytes(frame.tensors[i]));
    }
    std::vector<Cluster> result;
    for (auto& [first, cluster] : clusters) {
        arrange(cluster, frame, grouping);
        result.push_back(std::move(cluster));
    }
    return result;
}

} // namespace

Result<void> ShadowSet::reserve(const Frame& frame, const Shuffle& shuffle, ShadowGrouping grouping)
{
    const bool is_flat = m_device.limits().flat_addresses;
    const auto clusters = clusters_of(frame, grouping);
    m_regions.resize(frame.tensors.size());
    for (std::size_t step = 0; step < clusters.size(); ++step) {
        const std::size_t c = shuffle.shift == 0 ? step : clusters.size() - 1 - step;
        const Cluster& cluster = clusters[c];
        if (frame.memory[cluster.members.front()].address.is_null()) continue; // an empty tensor is null everywhere
        // A library may choose a kernel by its pointers' alignment, so the alignment here must equal the call's.
        const std::uint64_t residue = is_flat ? cluster.low % k_alignment : 0;
        const std::uint64_t shift = shuffle.of(c);
        auto memory =
            make(frame.memory[cluster.members.front()].address,
                 std::max<std::uint64_t>(cluster.high - cluster.low, 1) + shift + (is_flat ? 3 * k_alignment : 0));
        if (!memory) return std::unexpected(memory.error());
        const std::uint64_t start = is_flat ? to_strongest_class(memory->address.flat() + shift) : 0;
        for (std::size_t m = 0; m < cluster.members.size(); ++m) {
            const std::size_t i = cluster.members[m];
            m_regions[i] = {memory->address + (start + shift + residue + cluster.starts[m]),
                            guards::extent_bytes(frame.tensors[i])};
        }
    }
    return {};
}

Result<void> ShadowSet::give_other_contents(const std::vector<MemoryRef>& from, const Frame& frame)
{
    auto& bulk = m_device.bulk();
    for (std::size_t i = 0; i < m_regions.size(); ++i) {
        const MemoryRef& region = m_regions[i];
        if (region.size == 0 || m_device.space_of(region.address) != backends::MemorySpace::host) continue;
        if (auto copied = bulk.copy(region.address, from[i].address, region.size); !copied) return copied;
        if (auto disturbed = bulk.disturb(region, frame.tensors[i].dtype); !disturbed) return disturbed;
    }
    m_given.clear();
    for (std::size_t i = 0; i < m_regions.size(); ++i) {
        if (m_regions[i].size == 0 || m_device.space_of(m_regions[i].address) != backends::MemorySpace::host) continue;
        auto given = bulk.fingerprint(m_regions[i]);
        if (!given) return std::unexpected(given.error());
        m_given.emplace_back(i, *given);
    }
    return {};
}

Result<void> ShadowSet::check_host_regions(const Interface& interface) const
{
    for (const auto& [region, given] : m_given) {
        auto now = m_device.bulk().fingerprint(m_regions[region]);
        if (!now) return std::unexpected(now.error());
        if (*now != given)
            return fail(ErrorCode::not_recordable,
                        "it writes region '{}' on the host, which a graph cannot do: write it with a kernel or a copy",
                        interface.regions[region].name);
    }
    return {};
}

} // namespace warmgraph
