// The backend as an object, with or without the side that records.
#pragma once

#include <memory>

#include "device/recording_side.hpp"
#include "warmgraph/backends/cuda.hpp"

namespace warmgraph::backends::cuda {

/// `side`: null where nothing records or compiles; else it outlives the result.
[[nodiscard]] std::shared_ptr<Backend> make_backend(CudaOptions options, const RecordingSide* side);

/// The one there is, static. Only what is linked with recording_side.cpp has it.
[[nodiscard]] const RecordingSide& recording_side() noexcept;

} // namespace warmgraph::backends::cuda
