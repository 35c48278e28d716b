// A wrapped callable and what it is run with.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/capture/run.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/warmgraph.hpp"

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

/// A callable, by reference to what its owner keeps.
struct Runnable {
    const std::string& name;
    const Interface& interface;
    const Callable& callable;
    const std::shared_ptr<backends::Device>& device;
    StreamPool& streams;
    const ProgramUse* programs = nullptr; ///< null: those of the device's cache
};

/// Calls the callable on `stream`. Throws what it throws; forks that it left open are joined unless it is captured
/// (then end_capture refuses them).
void run(const Runnable& runnable, const RunInputs& inputs, ScratchPool& scratch,
         const std::shared_ptr<backends::Stream>& stream, RunContext& context);

/// The same for recording and verifying: whatever the callable throws becomes an Error (not_recordable unless it is an
/// Exception). The owner of what `runnable` names outlives the result.
[[nodiscard]] RunOnce run_once(const Runnable& runnable);

} // namespace warmgraph
