// Operations of nodes and streams on external semaphores.
#pragma once

#include "work.hpp"

namespace fake_cuda {

/// Changes the parameters of an instantiated node. The number of semaphores must stay the same.
[[nodiscard]] CUresult change(SignalWork& work, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS& params);
[[nodiscard]] CUresult change(SemaphoreWaitWork& work, const CUDA_EXT_SEM_WAIT_NODE_PARAMS& params);

void run_semaphores(const SignalWork& work);
void run_semaphores(const SemaphoreWaitWork& work);

} // namespace fake_cuda
