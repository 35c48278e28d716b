// warmgraph: record a function that launches accelerator work once, replay it in every later process.
//
// Users include this header. It needs C++20. A call that fails throws warmgraph::Exception: its code says what to do
// (ErrorCode), and its text says what was expected, what was found, and the cure. A miss, a damaged cache, a full disk
// or a refused recording is not a failure: the function runs as it is, and report() says why.
//
// Threads: several threads may use a Device, Program, Cache, Function or Pair at once. Calls of one Function are
// enqueued one after another, and concurrent first calls record once. One thread at a time may use a Stream, Event,
// Recorder or Buffer.
#pragma once

#include <string_view>

#include "warmgraph/adoption.hpp"
#include "warmgraph/arguments.hpp"
#include "warmgraph/artifacts.hpp"
#include "warmgraph/backends/address.hpp"
#include "warmgraph/base/artifact_kind.hpp"
#include "warmgraph/base/dtype.hpp"
#include "warmgraph/base/error_code.hpp"
#include "warmgraph/cache.hpp"
#include "warmgraph/device.hpp"
#include "warmgraph/exception.hpp"
#include "warmgraph/export.hpp"
#include "warmgraph/function.hpp"
#include "warmgraph/pair.hpp"
#include "warmgraph/preload.hpp"
#include "warmgraph/profile.hpp"
#include "warmgraph/recorder.hpp"
#include "warmgraph/spec.hpp"
#include "warmgraph/statistics.hpp"
#include "warmgraph/stored_entry.hpp"
#include "warmgraph/stream.hpp"
#include "warmgraph/tier.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// Returns the library's version: "0.1.0".
[[nodiscard]] WARMGRAPH_API std::string_view version() noexcept;

/// Returns the backends of this build: "opencl, cuda". A build without CUDA's headers has "opencl" alone.
[[nodiscard]] WARMGRAPH_API std::string_view built_backends() noexcept;

} // namespace warmgraph
