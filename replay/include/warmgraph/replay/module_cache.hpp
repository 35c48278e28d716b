// Images loaded in this process, once per device, digest and contents of their variables, whoever loads them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::replay {

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
                                                                 const std::function<Result<Bytes>()>& bytes);
    /// How many images it has, whoever loaded them.
    [[nodiscard]] std::size_t count() const noexcept;

private:
    struct Key {
        std::shared_ptr<backends::Device> device; ///< a module needs its device to unload: a key outlives its value
        Digest image;
        Digest variables; ///< zero: the image's own
        auto operator<=>(const Key&) const = default;
    };
    mutable std::mutex m_mutex;
    std::map<Key, std::shared_ptr<backends::Module>> m_modules;
};

} // namespace warmgraph::replay
