// One run of a wrapped callable: executed or captured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/capture/run_context.hpp"
#include "warmgraph/capture/scratch.hpp"

namespace warmgraph {

/// The inputs that differ from run to run.
struct RunInputs {
    const std::vector<guards::TensorArg>& tensors; ///< shapes and types in this call
    std::vector<MemoryRef> regions;                ///< in the order of Interface::regions
    std::vector<std::uint64_t> scalars, values;
};

/// Runs the callable once on `stream`. Throws nothing: an exception of the callable comes back as an Error.
using RunOnce = std::function<Result<void>(const RunInputs& inputs, ScratchPool& scratch,
                                           const std::shared_ptr<backends::Stream>& stream, RunContext& context)>;

/// The function that is recorded: the parts that stay the same over all its runs.
struct CaptureTarget {
    std::string name;
    const Interface& interface;
    std::shared_ptr<backends::Device> device;
    RunOnce run;
    DeclaredHandles handles{};         ///< events and semaphores outside the graph that its graphs may use
    std::uint64_t function = 0;        ///< as replay::ModuleUser::function
    std::vector<NamedMemory> others{}; ///< memory that is not a region, by name ("forward's 'h'"); used in messages
};

/// Captures the callable without running its work. If this function began a capture, it always ends the capture.
[[nodiscard]] Result<backends::RawGraph> captured_run(const CaptureTarget& target, const RunInputs& inputs,
                                                      ScratchPool& scratch,
                                                      const std::shared_ptr<backends::Stream>& stream,
                                                      RunContext& context);

} // namespace warmgraph
