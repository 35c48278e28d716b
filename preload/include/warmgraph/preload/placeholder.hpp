// Addresses with which a graph is restored while the addresses of its inputs and outputs are not known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

/// A range of addresses on which no work ever runs, because the first launch of a graph rebinds it. So all graphs of a
/// device can share one placeholder.
class Placeholder {
public:
    /// Returns a range with which graphs can be instantiated. A small range is real memory, a large one consists of
    /// shadows (addresses without memory). OpenCL does not accept shadows in a graph, because it names memory by
    /// objects. CUDA's driver cannot update a copy from a shadow to memory, so the first call would instantiate again.
    [[nodiscard]] static Result<std::shared_ptr<const Placeholder>> reserve(std::shared_ptr<backends::Device> device,
                                                                            std::uint64_t bytes)
    {
        constexpr std::uint64_t k_cheap = 256ULL << 20U;
        const bool may_be_shadow = device->limits().flat_addresses;
        auto memory = may_be_shadow && bytes > k_cheap ? device->reserve_shadow(bytes) : device->allocate(bytes);
        if (!memory && may_be_shadow) memory = device->reserve_shadow(bytes);
        if (!memory) return within("reserve placeholder addresses", memory.error());
        return std::shared_ptr<const Placeholder>{new Placeholder{std::move(device), *memory}};
    }
    Placeholder(const Placeholder&) = delete;
    Placeholder& operator=(const Placeholder&) = delete;
    ~Placeholder() { m_device->release(m_memory); }

    [[nodiscard]] const MemoryRef& memory() const noexcept { return m_memory; }

private:
    Placeholder(std::shared_ptr<backends::Device> device, const MemoryRef& memory) noexcept
        : m_device(std::move(device)), m_memory(memory)
    {
    }
    std::shared_ptr<backends::Device> m_device;
    MemoryRef m_memory;
};

/// The placeholders of one cache: for each device, the largest placeholder that is in use. Thread-safe.
class Placeholders {
public:
    [[nodiscard]] Result<std::shared_ptr<const Placeholder>> at_least(const std::shared_ptr<backends::Device>& device,
                                                                      std::uint64_t bytes)
    {
        const std::scoped_lock lock{m_mutex};
        auto& largest = m_largest[device.get()];
        if (auto known = largest.lock(); known && known->memory().size >= bytes) return known;
        auto made = Placeholder::reserve(device, bytes);
        if (made) largest = *made;
        return made;
    }

private:
    std::mutex m_mutex; // guards the other members
    std::map<const backends::Device*, std::weak_ptr<const Placeholder>> m_largest;
};

} // namespace warmgraph
