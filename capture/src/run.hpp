// One run of a wrapped callable, for whatever purpose: eager, warm-up or capture.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interface.hpp"
#include "run_context.hpp"
#include "scratch.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph {

/// Streams for Recorder::fork, kept from run to run.
class StreamPool {
public:
    explicit StreamPool(std::shared_ptr<backends::Device> device) : m_device(std::move(device)) {}
    [[nodiscard]] Result<std::shared_ptr<backends::Stream>> at(std::size_t index);

private:
    std::shared_ptr<backends::Device> m_device;
    std::vector<std::shared_ptr<backends::Stream>> m_streams;
};

/// What stays the same over all runs of a function.
struct Subject {
    std::string name;
    const Interface& interface;
    const Callable& callable;
    std::shared_ptr<backends::Device> device;
    StreamPool& streams;
    DeclaredHandles handles{};  ///< of outside, that its graphs may use
    std::uint64_t function = 0; ///< as in replay::ModuleUser
};

/// What differs from run to run.
struct Environment {
    const std::vector<guards::TensorArg>& tensors; ///< shapes and types of this call
    std::vector<MemoryRef> regions;                ///< as Interface::regions
    std::vector<std::uint64_t> scalars, values;
};

/// Calls the callable on `stream`. Throws what it throws; forks that it left open are joined unless it is captured
/// (then end_capture refuses them).
void run(const Subject& subject, const Environment& environment, ScratchPool& scratch,
         const std::shared_ptr<backends::Stream>& stream, RunContext& context);

/// The same for recording and verifying: whatever the callable throws becomes an Error (not_recordable unless it is an
/// Exception).
[[nodiscard]] Result<void> guarded_run(const Subject& subject, const Environment& environment, ScratchPool& scratch,
                                       const std::shared_ptr<backends::Stream>& stream, RunContext& context);

/// Captured: nothing is run. A capture that was begun is ended whatever the callable does.
[[nodiscard]] Result<backends::RawGraph> captured_run(const Subject& subject, const Environment& environment,
                                                      ScratchPool& scratch,
                                                      const std::shared_ptr<backends::Stream>& stream,
                                                      RunContext& context);

} // namespace warmgraph
