// Watches the work that a thread enqueues, through CUPTI's callbacks (image_tracker.hpp has the subscriber).
#pragma once

#include <cupti.h>

#include "device/core.hpp"
#include "warmgraph/backends/enqueue_watch.hpp"

namespace warmgraph::backends::cuda {

/// Starts a watch of this thread. not_recordable: the tracker does not run.
[[nodiscard]] Result<std::unique_ptr<EnqueueWatch>> watch_enqueues(const Core& core, CUstream stream);

/// True if this thread has a watch; reads only one variable.
[[nodiscard]] bool is_watching() noexcept;
/// Reports a successful driver call to the thread's watches. REQUIRES: is_watching(); called at the call's end.
void see_call(CUpti_CallbackId which, const CUpti_CallbackData& data) noexcept;

} // namespace warmgraph::backends::cuda
