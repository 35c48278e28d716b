// The call log and the fault of fake_cuda.h. The caller holds no lock.
#pragma once

#include <optional>

#include <cuda.h>

#define FAKE_CUDA_EXPORT __attribute__((visibility("default")))

namespace fake_cuda {

/// Logs a call. The status that it must fail with.
[[nodiscard]] std::optional<int> enter(const char* entry);

} // namespace fake_cuda
