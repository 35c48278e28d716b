#include "warmgraph/capture/scratch.hpp"

#include <algorithm>

#include "warmgraph/backends/bulk_memory.hpp"

namespace warmgraph {

ScratchPool::~ScratchPool()
{
    if (m_is_abandoned) return;
    for (const Region& region : m_regions) m_device->release(region.owned);
}

void ScratchPool::begin_run() noexcept
{
    for (Region& region : m_regions) region.in_use = false;
}

std::vector<std::pair<std::string, MemoryRef>> ScratchPool::regions() const
{
    std::vector<std::pair<std::string, MemoryRef>> result;
    for (const Region& region : m_regions) result.emplace_back(region.name, region.memory);
    return result;
}

Result<MemoryRef> ScratchPool::get(std::string_view name, std::uint64_t bytes)
{
    if (bytes == 0) return fail(ErrorCode::invalid_argument, "scratch '{}' has no bytes: ask for at least 1", name);
    auto found = std::ranges::find(m_regions, name, &Region::name);
    const bool known = found != m_regions.end();
    if (known && found->memory.size == bytes) {
        found->in_use = true;
        return found->memory;
    }
    if (known && found->in_use)
        return fail(ErrorCode::invalid_argument,
                    "scratch '{}' was requested with {} bytes and now with {}: give each size its own name", name,
                    found->memory.size, bytes);
    auto made = make(name, bytes, 0);
    if (!made) return std::unexpected(made.error());
    made->in_use = true;
    const MemoryRef memory = made->memory;
    if (known) {
        m_device->release(found->owned); // work in flight keeps the memory alive (replay/src/lifetimes.md)
        *found = std::move(*made);
    } else {
        m_regions.push_back(std::move(*made));
    }
    return memory;
}

Result<ScratchPool::Region> ScratchPool::make(std::string_view name, std::uint64_t bytes, std::uint64_t shift)
{
    auto owned = m_kind == Kind::memory ? m_device->allocate(bytes + shift) : m_device->reserve_shadow(bytes + shift);
    if (!owned) return within(fmt::format("scratch '{}'", name), owned.error());
    if (m_kind == Kind::memory) // zeros, as in a restored graph; many workspaces need counters that start at zero
        if (auto cleared = m_device->bulk().fill(*owned, std::byte{0}); !cleared) {
            m_device->release(*owned);
            return within(fmt::format("clear scratch '{}'", name), cleared.error());
        }
    return Region{std::string{name}, {owned->address + shift, bytes}, false, *owned};
}

Result<void> ScratchPool::mirror(const ScratchPool& other, const Shuffle& shuffle, std::size_t first)
{
    Result<void> result;
    for (std::size_t i = other.m_regions.size(); i-- > 0 && result;) {
        const Region& theirs = other.m_regions[i];
        auto made = make(theirs.name, theirs.memory.size, shuffle.of(first + i));
        if (made)
            m_regions.insert(m_regions.begin(), std::move(*made)); // keeps the order of the other pool
        else
            result = std::unexpected(made.error());
    }
    return result;
}

Result<void> ScratchPool::clear()
{
    for (const Region& region : m_regions)
        if (auto filled = m_device->bulk().fill(region.memory, std::byte{0}); !filled) return filled;
    return {};
}

} // namespace warmgraph
