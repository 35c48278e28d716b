#include "classify/undeclared_memory.hpp"

#include <algorithm>

#include "classify/region_map.hpp"
#include "warmgraph/backends/node_places.hpp"

namespace warmgraph {

namespace {

constexpr std::size_t k_pointer_bytes = sizeof(std::uint64_t);

class Search {
public:
    Search(const Interface& interface, const Captures& captures)
        : m_captures(captures), m_regions(map_regions(interface, captures))
    {
    }
    /// Looks at aligned words of 8 bytes, because compilers align pointers to 8 bytes.
    void look_at(ByteView first, ByteView moved)
    {
        for (std::size_t at = 0; at + k_pointer_bytes <= std::min(first.size(), moved.size()); at += k_pointer_bytes) {
            const auto word = load<std::uint64_t>(first, at);
            if (word == load<std::uint64_t>(moved, at)) look_at(word);
        }
    }
    void look_at(std::uint64_t word)
    {
        const auto holds = [word](const MemoryRef& memory) { return word - memory.address.flat() < memory.size; };
        const auto is_of_region = [&](const MappedRegion& region) {
            return region.contains(word) || (region.moved && holds(*region.moved));
        };
        if (std::ranges::any_of(m_found, holds) || std::ranges::any_of(m_regions, is_of_region)) return;
        // The other half of a pair may write its memory, so that memory is never a constant, even if the caller
        // promises so.
        if (!describe_other_memory(m_captures, Address::from_flat(word)).empty()) return;
        if (std::ranges::any_of(m_captures.first.free_blocks, holds)) return;
        if (m_captures.moved && std::ranges::any_of(m_captures.moved->free_blocks, holds)) return;
        if (const auto allocation = m_captures.allocation_at(word)) m_found.push_back(*allocation);
    }
    [[nodiscard]] std::vector<MemoryRef> found() && { return std::move(m_found); }

private:
    const Captures& m_captures;
    std::vector<MappedRegion> m_regions;
    std::vector<MemoryRef> m_found;
};

} // namespace

std::vector<MemoryRef> undeclared_memory(const Interface& interface, const Captures& captures)
{
    Search search{interface, captures};
    const auto& first = captures.first.graph.nodes;
    const auto& moved = captures.moved ? captures.moved->graph.nodes : first;
    for (std::size_t i = 0; i < std::min(first.size(), moved.size()); ++i) {
        backends::for_each_place(first[i].work, [&](const backends::NodePlace& place, const auto& was) {
            const auto is = backends::content_at(moved[i].work, place);
            if (place.kind == backends::NodePlaceKind::parameter && was.bytes != nullptr && is.bytes != nullptr)
                search.look_at(*was.bytes, *is.bytes);
            if (place.kind == backends::NodePlaceKind::source && *was.address == *is.address)
                search.look_at(was.address->flat());
        });
    }
    return std::move(search).found();
}

} // namespace warmgraph
