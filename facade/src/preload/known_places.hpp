// Where the memory of a cache's calls lies, for what is restored ahead of the next function's first call.
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

/// By a device's and a region's name: where the last first call of a function that has it found its memory. The functions of a
/// table (a decode step by batch size) have weights, caches and buffers of one name in one place. A guess: whoever launches
/// binds what the call gives. Thread-safe.
class KnownPlaces {
public:
    void note(const backends::Device& device, std::span<const std::string> names, std::span<const MemoryRef> memory)
    {
        const std::scoped_lock lock{m_mutex};
        Places& places = m_places[&device];
        for (std::size_t i = 0; i < names.size() && i < memory.size(); ++i) {
            const auto found = places.find(names[i]);
            if (found != places.end())
                found->second = memory[i].address;
            else if (places.size() < k_most)
                places.emplace(names[i], memory[i].address);
        }
    }
    [[nodiscard]] std::optional<Address> find(const backends::Device& device, std::string_view name) const
    {
        const std::scoped_lock lock{m_mutex};
        const auto places = m_places.find(&device);
        if (places == m_places.end()) return std::nullopt;
        const auto found = places->second.find(name);
        return found == places->second.end() ? std::nullopt : std::optional{found->second};
    }

private:
    static constexpr std::size_t k_most = 16384; ///< names of a device
    using Places = std::map<std::string, Address, std::less<>>;
    mutable std::mutex m_mutex; // guards the rest
    std::map<const backends::Device*, Places> m_places;
};

} // namespace warmgraph
