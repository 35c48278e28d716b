// Keeps the device code that anybody in this process loads, through CUPTI's callbacks.
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

/// Whether WARMGRAPH_TRACK_IMAGES=1 asks for the tracker as soon as a device is opened.
[[nodiscard]] bool tracking_requested() noexcept;

/// One for the process: CUPTI has one subscriber. Thread-safe.
class ImageTracker {
public:
    /// Loads CUPTI and subscribes. Idempotent. not_recordable with the cure: CUPTI missing, or another subscriber (a
    /// profiler) is attached.
    [[nodiscard]] static Result<void> start(const std::shared_ptr<const Driver>& driver, const CudaOptions& options);
    [[nodiscard]] static bool is_running() noexcept;

    /// Detaches CUPTI, for the sake of everybody's launches (backends/cuda/NOTES.md). start() and begin_watch() attach
    /// it again. False: it was not attached, a watch or a hold is open, or CUPTI does not let go. What is known of modules
    /// that may have been unloaded meanwhile is forgotten when it is attached again: code that was loaded before is unknown
    /// then, but for that of CUDA's and PyTorch's own libraries, which stays loaded.
    [[nodiscard]] static bool pause() noexcept;
    /// Attached from now on, and not detached before as many end_hold. Errors as of start(), and then nothing is held.
    /// Without effect, and no error, where it was never started.
    [[nodiscard]] static Result<void> begin_hold();
    static void end_hold() noexcept;
    /// Whether it was detached once.
    [[nodiscard]] static bool was_paused() noexcept;
    /// Whether some code that was loaded since calls malloc on the device.
    [[nodiscard]] static bool saw_malloc() noexcept;

    /// Has CUPTI tell of the driver calls that watches look at (enqueue_watch.hpp), until as many end_watch. not_recordable
    /// where no tracker runs, or CUPTI does not know them.
    [[nodiscard]] static Result<void> begin_watch();
    static void end_watch() noexcept;

    /// The cubin of a module that was loaded since start; null where it is unknown or ambiguous (IMAGES.md),
    /// or where no tracker runs.
    [[nodiscard]] static std::shared_ptr<const Bytes> image_of(CUmodule module);

    /// Of the modules that were loaded, and the variables that were asked for, since start.
    [[nodiscard]] static const VariableAccess& variables() noexcept;
};

} // namespace warmgraph::backends::cuda
