// The part of this backend that records and compiles: CUPTI, NVRTC, and reading graphs back. A library that only
// replays does not link it (make_cuda_replay_backend), so the rest of the backend uses only this interface.
#pragma once

#include <memory>
#include <vector>

#include <cuda.h>

#include "cubin/variable_access.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::cuda {

struct Core;
class Driver;
class Memory;
class WarmUp;

/// Stateless. Thread-safe.
class RecordingSide {
public:
    RecordingSide() = default;
    RecordingSide(const RecordingSide&) = delete;
    RecordingSide& operator=(const RecordingSide&) = delete;
    virtual ~RecordingSide() = default;

    /// Starts the tracker if WARMGRAPH_TRACK_IMAGES requests it. Called before a device's context is made.
    virtual void before_context(const std::shared_ptr<const Driver>& driver, const CudaOptions& options) const = 0;
    /// See Backend::prepare_recording and Backend::libraries.
    [[nodiscard]] virtual Result<void> prepare(const std::shared_ptr<const Driver>& driver,
                                               const CudaOptions& options) const = 0;
    [[nodiscard]] virtual std::vector<Library> libraries(const CudaOptions& options) const = 0;
    /// Makes the recording part of one device. The device and its parts outlive the result, and also the compiler
    /// below.
    [[nodiscard]] virtual std::unique_ptr<DeviceRecording> make_recording(Device& device, Core& core,
                                                                          Memory& memory) const = 0;
    [[nodiscard]] virtual std::unique_ptr<Compiler> make_compiler(Core& core, WarmUp& warm_up) const = 0;

    /// Reads back a graph that a stream has captured (graph/graph_reader.hpp).
    [[nodiscard]] virtual Result<RawGraph> read_captured(Core& core, CUgraph graph) const = 0;

    // Functions of ImageTracker (code/image_tracker.hpp):
    [[nodiscard]] virtual std::shared_ptr<const Bytes> image_of(CUmodule module) const = 0;
    /// The error for a module that image_of() does not know: not_recordable, with the cure.
    [[nodiscard]] virtual Error image_unknown() const = 0;
    [[nodiscard]] virtual const VariableAccess& variables() const noexcept = 0;
};

} // namespace warmgraph::backends::cuda
