// The images that are loaded in this process. An image is loaded once per device, digest and contents of its variables.
// Images whose code keeps state (backends::Module::keeps_state) are loaded once for each user.
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

/// The user of a module whose code keeps state: a function, and an index if its graph has several equal modules.
/// Functions launch at the same time, and one function's counters must not mix with another's.
struct ModuleUser {
    std::uint64_t function = 0; ///< the function's number in this process
    std::uint32_t copy = 0;
    auto operator<=>(const ModuleUser&) const = default;
};

/// The user of a module that is loaded before its first user is known.
inline constexpr ModuleUser k_nobody{~0ULL, 0};

/// The images that one cache uses. An image stays loaded while a ModuleCache that loaded it, or a holder of its module,
/// exists. Thread-safe: concurrent requests for one image load it once, even through different ModuleCaches. Devices
/// with loaded images stay open.
class ModuleCache {
public:
    ModuleCache() = default;
    ModuleCache(const ModuleCache&) = delete;
    ModuleCache& operator=(const ModuleCache&) = delete;
    ~ModuleCache();

    /// Returns the image's module. Right after loading, writes the variables that `image` names; the same image with
    /// other contents of variables is another module. Calls `bytes` only if the image must be loaded; `bytes` may be
    /// slow, because other images load meanwhile.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> load(const std::shared_ptr<backends::Device>& device,
                                                                 const cachefmt::ImageRef& image,
                                                                 const ModuleUser& user,
                                                                 const std::function<Result<Bytes>()>& bytes);
    /// Whether the image is loaded in this process now, so that load() will probably not need its bytes.
    [[nodiscard]] bool has(const backends::Device& device, const cachefmt::ImageRef& image) const;
    /// Returns how many images this cache holds.
    [[nodiscard]] std::size_t count() const noexcept;
    /// Whether one of the cache's images keeps state (backends::Module::keeps_state).
    [[nodiscard]] bool keeps_state() const;

private:
    struct Key {
        std::shared_ptr<backends::Device> device; ///< kept because unloading the module needs the device
        Digest image;
        Digest variables; ///< digest of the variables' contents; zero: the image's initial values
        auto operator<=>(const Key&) const = default;
    };
    mutable std::mutex m_mutex;
    struct LoadedModule {
        std::shared_ptr<backends::Module> module;
        ModuleUser user; ///< the first user of the module
    };
    std::map<Key, LoadedModule> m_modules;
};

} // namespace warmgraph::replay
