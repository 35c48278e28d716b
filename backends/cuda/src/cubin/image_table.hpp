// Ties loaded modules to their images. Bookkeeping only: image_tracker.cpp has the callbacks and driver calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/base/bytes.hpp"

namespace warmgraph::backends::cuda {

/// Device code that the driver loaded during a call.
struct LoadedImage {
    std::shared_ptr<const Bytes> bytes;
    std::uint32_t id = 0; ///< the id that its unload event will carry
};

/// Knowledge about the module that a call concerns.
struct ModuleCall {
    enum class Module : std::uint8_t {
        made,  ///< created by the call: any older module with this handle no longer exists
        older, ///< existed before the call
    };
    const void* handle = nullptr;
    const void* context = nullptr;
    const void* library = nullptr; ///< the module's library in this context; null if none or unknown
    Module module = Module::older;
    std::optional<std::string> function{};    ///< one kernel of the module
    std::vector<std::string> all_functions{}; ///< all kernels of the module; empty if not requested
};

/// Thread-safe. In doubt it returns nothing, because a wrong image would cause a wrong replay.
class ImageTable {
public:
    /// Ties the images that arrived during a call to the call's module. Ignores images that cannot belong to the module
    /// (the kernel is missing). If several different images fit, the module stays ambiguous for ever.
    void associate(const ModuleCall& call, const std::vector<LoadedImage>& loaded);

    void forget_module(const void* handle) noexcept;
    void forget_image(std::uint32_t id) noexcept;
    void forget_context(const void* context) noexcept;
    /// Forgets all modules for which `stays` returns false.
    void forget_all_but(const std::function<bool(const void* handle)>& stays);

    /// Returns null if the image is unknown or ambiguous.
    [[nodiscard]] std::shared_ptr<const Bytes> find(const void* handle) const;
    /// True if images were tied to the module, even if they are ambiguous.
    [[nodiscard]] bool is_known(const void* handle) const;

private:
    struct HandleImage {
        LoadedImage image; // no bytes: ambiguous
        const void* context = nullptr;
    };
    mutable std::mutex m_mutex;
    std::map<const void*, HandleImage> m_images;
};

} // namespace warmgraph::backends::cuda
