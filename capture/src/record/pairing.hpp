// Two processes: what one writes of a capture (warmgraph/capture/stored_capture.hpp), and how another one sees it.
#pragma once

#include <functional>

#include "classify/classify.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph {

/// Whether a word is an address of ordinary host memory of this process, which the device cannot reach. Reads the
/// process's mappings once.
[[nodiscard]] std::function<bool(std::uint64_t)> host_only(std::shared_ptr<backends::Device> device);

/// A capture of this process for others. `graph` was read back; names of regions are those of the interface. Errors: a
/// host function without a name, a module whose image cannot be had.
[[nodiscard]] Result<StoredCapture> stored_capture(const std::shared_ptr<backends::Device>& device,
                                                   const Interface& interface, cachefmt::EntryKey key,
                                                   CapturedGraph captured);

/// Another process's capture in the terms of this one: kernels of `first`, where each has the same code there, and host
/// functions of this process by their names. not_recordable where code or regions are not those of `first`. Where the
/// structure is another one, that is left to classify().
[[nodiscard]] Result<CapturedGraph> captured_elsewhere(const StoredCapture& stored, const Interface& interface,
                                                       const CapturedGraph& first);

/// Captures::foreign.
[[nodiscard]] ForeignMemory foreign_memory(const StoredCapture& stored, std::shared_ptr<backends::Device> device);

} // namespace warmgraph
