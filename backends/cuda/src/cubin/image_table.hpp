// Which loaded module came from which image. Only the bookkeeping: callbacks and driver calls are image_tracker.cpp's.
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
    std::uint32_t id = 0; ///< what its unloading will be announced by
};

/// What is known of the module that a call was about.
struct ModuleCall {
    enum class Module : std::uint8_t {
        made,  ///< by the call: whatever had this handle before is gone
        older, ///< than the call
    };
    const void* handle = nullptr;
    const void* context = nullptr;
    const void* library = nullptr; ///< whose module it is in this context; null where it is nobody's, or not known
    Module module = Module::older;
    std::optional<std::string> function{};    ///< a kernel that the module has
    std::vector<std::string> all_functions{}; ///< all kernels that it has; empty where not asked for
};

/// Thread-safe. When in doubt it knows nothing: an image that is not the module's would be a wrong replay.
class ImageTable {
public:
    /// The images that arrived during the call. One that cannot be the module's (it lacks the kernel) is left out; of
    /// several different ones that can, none is taken, then or later.
    void tie(const ModuleCall& call, const std::vector<LoadedImage>& loaded);

    void forget_module(const void* handle) noexcept;
    void forget_image(std::uint32_t id) noexcept;
    void forget_context(const void* context) noexcept;
    /// Modules that `stays` does not vouch for.
    void forget_all_but(const std::function<bool(const void* handle)>& stays);

    /// Null where there is none, or more than one.
    [[nodiscard]] std::shared_ptr<const Bytes> find(const void* handle) const;
    /// Whether there is one or more.
    [[nodiscard]] bool is_known(const void* handle) const;

private:
    struct Tie {
        LoadedImage image; // without bytes: ambiguous
        const void* context = nullptr;
    };
    mutable std::mutex m_mutex;
    std::map<const void*, Tie> m_ties;
};

} // namespace warmgraph::backends::cuda
