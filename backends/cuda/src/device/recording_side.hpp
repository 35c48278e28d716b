// The side of this backend that records and compiles: CUPTI, NVRTC, and graphs that are read back. A library that only replays
// is linked without it (make_cuda_replay_backend). So the rest of the backend knows this interface alone.
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

/// Without state of its own. Thread-safe.
class RecordingSide {
public:
    RecordingSide() = default;
    RecordingSide(const RecordingSide&) = delete;
    RecordingSide& operator=(const RecordingSide&) = delete;
    virtual ~RecordingSide() = default;

    /// Before a device's context is made: what is loaded into it must be seen, where WARMGRAPH_TRACK_IMAGES asks for it.
    virtual void before_context(const std::shared_ptr<const Driver>& driver, const CudaOptions& options) const = 0;
    /// Backend::prepare_recording and Backend::libraries.
    [[nodiscard]] virtual Result<void> prepare(const std::shared_ptr<const Driver>& driver,
                                               const CudaOptions& options) const = 0;
    [[nodiscard]] virtual std::vector<Library> libraries(const CudaOptions& options) const = 0;
    /// A device's own. The device and its parts outlive both.
    [[nodiscard]] virtual std::unique_ptr<Recording> make_recording(Device& device, Core& core,
                                                                    Memory& memory) const = 0;
    [[nodiscard]] virtual std::unique_ptr<Compiler> make_compiler(Core& core, WarmUp& warm_up) const = 0;

    /// Reads a graph back that a stream has captured (graph/graph_reader.hpp).
    [[nodiscard]] virtual Result<RawGraph> read_captured(Core& core, CUgraph graph) const = 0;

    // ImageTracker (code/image_tracker.hpp) answers these.
    [[nodiscard]] virtual std::shared_ptr<const Bytes> image_of(CUmodule module) const = 0;
    /// not_recordable with the cure, for a module that image_of() does not know.
    [[nodiscard]] virtual Error image_unknown() const = 0;
    [[nodiscard]] virtual const VariableAccess& variables() const noexcept = 0;
};

} // namespace warmgraph::backends::cuda
