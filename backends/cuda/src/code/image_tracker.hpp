// Keeps all device code that is loaded in this process, through CUPTI's callbacks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <cuda.h>

#include "cubin/variable_access.hpp"
#include "device/driver.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::backends::cuda {

/// True if WARMGRAPH_TRACK_IMAGES=1 requests the tracker as soon as a device is opened.
[[nodiscard]] bool tracking_requested() noexcept;

/// One tracker for the process, because CUPTI allows one subscriber. Thread-safe.
class ImageTracker {
public:
    /// Loads CUPTI and subscribes. Later calls do nothing. not_recordable, with the cure: CUPTI is missing, or another
    /// subscriber (a profiler) is attached.
    [[nodiscard]] static Result<void> start(const std::shared_ptr<const Driver>& driver, const CudaOptions& options);
    [[nodiscard]] static bool is_running() noexcept;

    /// Detaches CUPTI, because it slows down every launch (backends/cuda/NOTES.md). start() and begin_watch() attach it
    /// again, and then forget all modules that may have been unloaded: earlier code is unknown, except that of CUDA's
    /// and PyTorch's own libraries, which stays loaded. False: not attached, a watch or a hold is active, or CUPTI
    /// refuses.
    [[nodiscard]] static bool pause() noexcept;
    /// Attaches CUPTI if start() was ever called, and prevents pauses until an equal number of end_hold() calls. Errors
    /// as for start(); after an error nothing is held. Without start() it does nothing and succeeds.
    [[nodiscard]] static Result<void> begin_hold();
    static void end_hold() noexcept;
    /// True if CUPTI was ever detached.
    [[nodiscard]] static bool was_paused() noexcept;
    /// True if loaded code may call malloc on the device.
    [[nodiscard]] static bool saw_malloc() noexcept;

    /// Enables callbacks for the driver calls that watches need (enqueue_watch.hpp), until an equal number of
    /// end_watch() calls. not_recordable: no tracker runs, or CUPTI does not know these calls.
    [[nodiscard]] static Result<void> begin_watch();
    static void end_watch() noexcept;

    /// The cubin of a module that was loaded since start(); null if unknown or ambiguous (IMAGES.md), or if no tracker
    /// runs.
    [[nodiscard]] static std::shared_ptr<const Bytes> image_of(CUmodule module);

    /// The modules that were loaded since start(), and the variables whose addresses were requested.
    [[nodiscard]] static const VariableAccess& variables() noexcept;
};

} // namespace warmgraph::backends::cuda
