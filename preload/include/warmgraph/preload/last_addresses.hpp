// The last addresses of a cache's calls. Preloaded graphs are bound to these addresses.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "warmgraph/backends/device.hpp"

namespace warmgraph {

/// Keeps, for each device and region name, the address that a region of this name had when last noted. The functions of
/// a table (decode steps, one for each batch size) have weights, caches and buffers with the same names and addresses.
/// So the address is a good guess; each launch binds the memory of its call. Thread-safe.
class LastAddresses {
public:
    void note(const backends::Device& device, std::span<const std::string> names, std::span<const MemoryRef> memory)
    {
        const std::scoped_lock lock{m_mutex};
        Addresses& addresses = m_addresses[&device];
        for (std::size_t i = 0; i < names.size() && i < memory.size(); ++i) {
            const auto found = addresses.find(names[i]);
            if (found != addresses.end())
                found->second = memory[i].address;
            else if (addresses.size() < k_most)
                addresses.emplace(names[i], memory[i].address);
        }
    }
    [[nodiscard]] std::optional<Address> find(const backends::Device& device, std::string_view name) const
    {
        const std::scoped_lock lock{m_mutex};
        const auto addresses = m_addresses.find(&device);
        if (addresses == m_addresses.end()) return std::nullopt;
        const auto found = addresses->second.find(name);
        return found == addresses->second.end() ? std::nullopt : std::optional{found->second};
    }

private:
    static constexpr std::size_t k_most = 16384; ///< the most names that are kept per device
    using Addresses = std::map<std::string, Address, std::less<>>;
    mutable std::mutex m_mutex; // guards the other members
    std::map<const backends::Device*, Addresses> m_addresses;
};

} // namespace warmgraph
