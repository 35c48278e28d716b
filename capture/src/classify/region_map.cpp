#include "classify/region_map.hpp"

#include <algorithm>
#include <map>

#include "warmgraph/backends/node_places.hpp"

namespace warmgraph {

namespace {

using backends::RawAllocation;

/// Whether both addresses are the same place in the graph's own allocations: `was` in `first`, `is` in `other`.
bool is_same_place(const backends::RawGraph& first, const backends::RawGraph& other, std::uint64_t was,
                   std::uint64_t is) noexcept
{
    for (std::size_t i = 0; i < first.allocations.size(); ++i) {
        const MemoryRef &a = first.allocations[i].memory, &b = other.allocations[i].memory;
        const std::uint64_t offset = is - b.address.flat();
        if (offset <= b.size && was - a.address.flat() == offset) return true;
    }
    return false;
}

class AllocationRebase {
public:
    AllocationRebase(const backends::RawGraph& first, const backends::RawGraph& other) : m_first(first), m_other(other)
    {
    }
    void bytes(const Bytes& was, Bytes& is) const
    {
        constexpr std::size_t k_bytes_of_word = sizeof(std::uint64_t);
        for (std::size_t at = 0; was.size() == is.size() && at + k_bytes_of_word <= is.size();
             at += k_bytes_of_word / 2)
            if (is_same_place(m_first, m_other, load<std::uint64_t>(was, at), load<std::uint64_t>(is, at)))
                std::copy_n(was.begin() + static_cast<std::ptrdiff_t>(at), k_bytes_of_word,
                            is.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void address(const Address& was, Address& is) const
    {
        if (is_same_place(m_first, m_other, was.flat(), is.flat())) is = was;
    }
    void work(const backends::RawWork& was, backends::RawWork& is) const
    {
        if (was.index() != is.index()) return; // structural_difference() refuses this
        backends::for_each_place(is, [&](const backends::NodePlace& place, const auto& now) {
            const auto before = backends::content_at(was, place);
            if (before.address != nullptr && now.address != nullptr) address(*before.address, *now.address);
            if (before.bytes != nullptr && now.bytes != nullptr) bytes(*before.bytes, *now.bytes);
        });
    }

private:
    const backends::RawGraph& m_first;
    const backends::RawGraph& m_other;
};

} // namespace

std::vector<MappedRegion> map_regions(const Interface& interface, const Captures& captures)
{
    using Origin = MappedRegion::Origin;
    std::vector<MappedRegion> result;
    const CapturedGraph& first = captures.first;
    const CapturedGraph* moved = captures.moved ? &*captures.moved : nullptr;
    const auto add = [&result](std::string name, Origin origin, const MemoryRef& at, const MemoryRef* then) {
        result.push_back({std::move(name), origin, at, then != nullptr ? std::optional{*then} : std::nullopt});
    };
    for (std::size_t i = 0; i < first.regions.size(); ++i)
        add(interface.regions[i].name, Origin::declared, first.regions[i], moved ? &moved->regions[i] : nullptr);
    for (std::size_t i = 0; i < first.scratch.size(); ++i)
        add(first.scratch[i].first, Origin::scratch, first.scratch[i].second,
            moved ? &moved->scratch[i].second : nullptr);
    for (std::size_t i = 0; i < first.graph.allocations.size(); ++i)
        add(fmt::format("graph allocation {}", i), Origin::scratch, first.graph.allocations[i].memory,
            moved ? &moved->graph.allocations[i].memory : nullptr);
    for (const auto& [name, memory] : captures.constants)
        add(name, Origin::constant, memory, moved ? &memory : nullptr);
    return result;
}

std::optional<std::pair<std::string, std::string>> indistinct_movement(const Interface& interface,
                                                                       const Captures& captures)
{
    std::map<std::uint64_t, std::string> movements{};
    auto regions = map_regions(interface, captures);
    // The driver chooses the addresses of the graph's own allocations, and constants do not move.
    regions.resize(regions.size() - captures.first.graph.allocations.size() - captures.constants.size());
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const MappedRegion& region = regions[i];
        // The region moves with the first region of its group.
        if (i < captures.groups.size() && captures.groups[i] != i) continue;
        if (region.delta() == 0) return std::pair{region.name, region.name};
        const auto [known, is_new] = movements.try_emplace(region.delta(), region.name);
        if (!is_new) return std::pair{known->second, region.name};
    }
    return std::nullopt;
}

void join_scratch(CapturedGraph& first, CapturedGraph& moved)
{
    const auto follows = [](const CapturedGraph& capture, std::size_t before, std::size_t after) {
        const MemoryRef& memory = capture.scratch[before].second;
        return memory.address.flat() + memory.size == capture.scratch[after].second.address.flat();
    };
    for (std::size_t i = 0; i < first.scratch.size();) {
        std::size_t next = 0;
        while (next < first.scratch.size() && !(follows(first, i, next) && follows(moved, i, next))) ++next;
        if (next == first.scratch.size()) {
            ++i;
            continue;
        }
        for (CapturedGraph* capture : {&first, &moved}) {
            capture->scratch[i].second.size += capture->scratch[next].second.size;
            capture->scratch.erase(capture->scratch.begin() + static_cast<std::ptrdiff_t>(next));
        }
        if (next < i) --i; // an earlier element was removed
    }
}

backends::RawGraph with_allocations_of(const backends::RawGraph& first, backends::RawGraph other)
{
    if (first.allocations == other.allocations || first.allocations.size() != other.allocations.size()) return other;
    const backends::RawGraph before = other;
    const AllocationRebase rebase{first, before};
    for (std::size_t i = 0; i < std::min(first.nodes.size(), other.nodes.size()); ++i)
        rebase.work(first.nodes[i].work, other.nodes[i].work);
    for (std::size_t i = 0; i < first.allocations.size(); ++i)
        if (first.allocations[i].memory.size == other.allocations[i].memory.size)
            other.allocations[i] = first.allocations[i];
    return other;
}

} // namespace warmgraph
