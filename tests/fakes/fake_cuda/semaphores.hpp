// Operations on external semaphores by nodes and streams.
#pragma once

#include "work.hpp"

namespace fake_cuda {

/// Sets new parameters of an instantiated node; the number of semaphores must stay the same.
[[nodiscard]] CUresult change(SignalWork& work, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS& params);
[[nodiscard]] CUresult change(SemaphoreWaitWork& work, const CUDA_EXT_SEM_WAIT_NODE_PARAMS& params);

void run_semaphores(const SignalWork& work);
void run_semaphores(const SemaphoreWaitWork& work);

} // namespace fake_cuda
