// One run of a wrapped callable, for whatever purpose: eager, or captured.
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

/// What differs from run to run.
struct RunInputs {
    const std::vector<guards::TensorArg>& tensors; ///< shapes and types of this call
    std::vector<MemoryRef> regions;                ///< as Interface::regions
    std::vector<std::uint64_t> scalars, values;
};

/// Runs the callable once on `stream`. Throws nothing: what the callable throws comes back as an Error.
using RunOnce = std::function<Result<void>(const RunInputs& inputs, ScratchPool& scratch,
                                           const std::shared_ptr<backends::Stream>& stream, RunContext& context)>;

/// What stays the same over all runs of a function.
struct Subject {
    std::string name;
    const Interface& interface;
    std::shared_ptr<backends::Device> device;
    RunOnce run;
    DeclaredHandles handles{};         ///< of outside, that its graphs may use
    std::uint64_t function = 0;        ///< as in replay::ModuleUser
    std::vector<NamedMemory> others{}; ///< that are none of its regions, for messages: "forward's 'h'"
};

/// Captured: nothing is run. A capture that was begun is ended whatever the callable does.
[[nodiscard]] Result<backends::RawGraph> captured_run(const Subject& subject, const RunInputs& inputs,
                                                      ScratchPool& scratch,
                                                      const std::shared_ptr<backends::Stream>& stream,
                                                      RunContext& context);

} // namespace warmgraph
