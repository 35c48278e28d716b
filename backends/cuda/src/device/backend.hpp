// Makes the backend, with or without the side that records.
#pragma once

#include <memory>

#include "device/recording_side.hpp"
#include "warmgraph/backends/cuda.hpp"

namespace warmgraph::backends::cuda {

/// A null `side` means that nothing records or compiles; else `side` must outlive the result.
[[nodiscard]] std::shared_ptr<Backend> make_backend(CudaOptions options, const RecordingSide* side);

/// The static recording side. Only libraries that link recording_side.cpp have it.
[[nodiscard]] const RecordingSide& recording_side() noexcept;

} // namespace warmgraph::backends::cuda
