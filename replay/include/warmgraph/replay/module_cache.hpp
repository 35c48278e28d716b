// Images loaded in this process, once per device, digest and contents of their variables, whoever loads them; those whose code
// keeps state (backends::Module::keeps_state) once for each who runs them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::replay {

/// Who runs a module whose code keeps state: a function, and of several modules in its graph that are equal the how-manieth.
/// Functions launch at the same time, and what one of them counts is none of the other's.
struct ModuleUser {
    std::uint64_t function = 0; ///< a number of its own in this process
    std::uint32_t copy = 0;
    auto operator<=>(const ModuleUser&) const = default;
};

/// Who loads a module for whoever will run it first.
inline constexpr ModuleUser k_nobody{~0ULL, 0};

/// What one cache has in use of the process's loaded images. An image stays loaded as long as a ModuleCache that asked for
/// it, or somebody who has it from there. Thread-safe: concurrent requests for one image, through whichever object, load it
/// once. Devices whose images are loaded stay open.
class ModuleCache {
public:
    ModuleCache() = default;
    ModuleCache(const ModuleCache&) = delete;
    ModuleCache& operator=(const ModuleCache&) = delete;
    ~ModuleCache();

    /// Variables that `image` names are written once, right after loading: the same image with other contents is
    /// another module. `bytes` is called only where the image has to be loaded, and may take its time: other images
    /// are loaded meanwhile.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> load(const std::shared_ptr<backends::Device>& device,
                                                                 const cachefmt::ImageRef& image,
                                                                 const ModuleUser& user,
                                                                 const std::function<Result<Bytes>()>& bytes);
    /// Whether load() of it would hardly need its bytes: somebody in this process has it loaded now.
    [[nodiscard]] bool has(const backends::Device& device, const cachefmt::ImageRef& image) const;
    /// How many images it has, whoever loaded them.
    [[nodiscard]] std::size_t count() const noexcept;
    /// Whether one of them does (backends::Module::keeps_state).
    [[nodiscard]] bool keeps_state() const;

private:
    struct Key {
        std::shared_ptr<backends::Device> device; ///< a module needs its device to unload: a key outlives its value
        Digest image;
        Digest variables; ///< zero: the image's own
        auto operator<=>(const Key&) const = default;
    };
    mutable std::mutex m_mutex;
    struct Known {
        std::shared_ptr<backends::Module> module;
        ModuleUser user; ///< the first
    };
    std::map<Key, Known> m_modules;
};

} // namespace warmgraph::replay
