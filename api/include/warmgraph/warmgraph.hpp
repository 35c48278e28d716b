// warmgraph: record a function that launches accelerator work once, replay it in every later process.
//
// This is the header that users include. C++20. Failures are thrown as warmgraph::Exception, whose code names what to
// do (ErrorCode) and whose text says what was expected, what was found and the cure. A miss, a damaged cache, a full
// disk or a refused recording is no failure: the function then runs as it is, and report() says why.
//
// Threads: Device, Program, Cache, Function and Pair may be used from several threads at once (calls of one Function are
// enqueued one after another; concurrent first calls record once). A Stream, an Event, a
// Recorder and a Buffer belong to one thread at a time.
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
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// "0.1.0"
[[nodiscard]] WARMGRAPH_API std::string_view version() noexcept;

/// The backends that this build has: "opencl, cuda". A build without CUDA's headers has "opencl" alone.
[[nodiscard]] WARMGRAPH_API std::string_view built_backends() noexcept;

} // namespace warmgraph
