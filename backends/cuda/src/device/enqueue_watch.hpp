// What a thread enqueues, through CUPTI's callbacks (image_tracker.hpp has the subscriber).
#pragma once

#include <cupti.h>

#include "device/core.hpp"
#include "warmgraph/backends/enqueue_watch.hpp"

namespace warmgraph::backends::cuda {

/// A watch of this thread. not_recordable where the tracker does not run.
[[nodiscard]] Result<std::unique_ptr<EnqueueWatch>> watch_enqueues(const Core& core, CUstream stream);

/// Whether this thread has a watch: reads one variable.
[[nodiscard]] bool is_watching() noexcept;
/// Shows the thread's watches a driver call that succeeded. REQUIRES: is_watching(), at the call's end.
void see_call(CUpti_CallbackId which, const CUpti_CallbackData& data) noexcept;

} // namespace warmgraph::backends::cuda
