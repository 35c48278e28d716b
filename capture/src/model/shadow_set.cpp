#include "warmgraph/capture/shadow_set.hpp"

#include <algorithm>

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
    auto memory = on_host ? m_device.allocate_host(size) : m_device.reserve_shadow(size);
    if (!memory) return within("reserve addresses to capture with", memory.error());
    m_owned.push_back(*memory);
    return memory;
}

Result<void> ShadowSet::reserve(const Frame& frame, const Shuffle& shuffle)
{
    const bool is_flat = m_device.limits().flat_addresses;
    const std::size_t count = frame.tensors.size();
    m_regions.resize(count);
    for (std::size_t step = 0; step < count; ++step) {
        const std::size_t i = shuffle.shift == 0 ? step : count - 1 - step;
        const Address at = frame.memory[i].address;
        const std::uint64_t extent = guards::extent_bytes(frame.tensors[i]);
        // A kernel that is chosen by its pointers' alignment must be the one for this call's, neither weaker nor stronger.
        const std::uint64_t residue = is_flat ? at.offset % k_alignment : 0;
        const std::uint64_t shift = shuffle.of(i);
        auto memory = make(at, std::max<std::uint64_t>(extent, 1) + shift + (is_flat ? 2 * k_alignment : 0));
        if (!memory) return std::unexpected(memory.error());
        const std::uint64_t start = is_flat ? (k_alignment - memory->address.offset % k_alignment) % k_alignment : 0;
        m_regions[i] = {memory->address + (start + shift + residue), extent};
    }
    return {};
}

} // namespace warmgraph
