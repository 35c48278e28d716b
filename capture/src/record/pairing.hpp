// Writes a capture for other processes, and reads the capture of another process
// (warmgraph/capture/stored_capture.hpp).
#pragma once

#include <functional>

#include "classify/classify.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph {

/// Returns a test for addresses of this process's ordinary host memory, which the device cannot reach. Reads the
/// process's mappings once.
[[nodiscard]] std::function<bool(std::uint64_t)> host_only(std::shared_ptr<backends::Device> device);

/// Makes a capture of this process readable for other processes. `graph` was read back; the names of regions are the
/// interface's. Errors: a host function without a name, a module whose image is not available.
[[nodiscard]] Result<StoredCapture> stored_capture(const std::shared_ptr<backends::Device>& device,
                                                   const Interface& interface, cachefmt::EntryKey key,
                                                   CapturedGraph captured);

/// Translates another process's capture into this process: kernels get the modules of `first` if the code is the same,
/// and host functions are found by name. not_recordable: code or regions differ from those of `first`. A different
/// structure is not an error here; classify() reports it.
[[nodiscard]] Result<CapturedGraph> captured_elsewhere(const StoredCapture& stored, const Interface& interface,
                                                       const CapturedGraph& first);

/// Makes the value of Captures::foreign.
[[nodiscard]] ForeignMemory foreign_memory(const StoredCapture& stored, std::shared_ptr<backends::Device> device);

} // namespace warmgraph
