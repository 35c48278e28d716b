// The call log and the fault of fake_cuda.h. A caller must not hold a lock.
#pragma once

#include <optional>

#include <cuda.h>

#define FAKE_CUDA_EXPORT __attribute__((visibility("default")))

namespace fake_cuda {

/// Logs a call. Returns the status with which the call must fail, or nullopt.
[[nodiscard]] std::optional<int> enter(const char* entry);

} // namespace fake_cuda
