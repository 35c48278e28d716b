// What nodes and streams do with external semaphores.
#pragma once

#include "work.hpp"

namespace fake_cuda {

/// New parameters of an instantiated node: as many semaphores as it had.
[[nodiscard]] CUresult change(SignalWork& work, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS& params);
[[nodiscard]] CUresult change(SemaphoreWaitWork& work, const CUDA_EXT_SEM_WAIT_NODE_PARAMS& params);

void run_semaphores(const SignalWork& work);
void run_semaphores(const SemaphoreWaitWork& work);

} // namespace fake_cuda
