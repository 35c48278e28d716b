// Where the calls of a cache have their memory: graphs that are preloaded are bound to it.
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

/// By a device and a region's name: the address in the last first call of a function that has it. The functions of a table (a
/// decode step by batch size) have weights, caches and buffers of one name at one address. A guess: each launch binds what its
/// call gives. Thread-safe.
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
    static constexpr std::size_t k_most = 16384; ///< names of a device
    using Addresses = std::map<std::string, Address, std::less<>>;
    mutable std::mutex m_mutex; // guards the rest
    std::map<const backends::Device*, Addresses> m_addresses;
};

} // namespace warmgraph
