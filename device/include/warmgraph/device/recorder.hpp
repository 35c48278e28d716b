// A wrapped callable and the objects that its runs use.
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

/// Streams for Recorder::fork, reused from run to run.
class StreamPool {
public:
    explicit StreamPool(std::shared_ptr<backends::Device> device) : m_device(std::move(device)) {}
    [[nodiscard]] Result<std::shared_ptr<backends::Stream>> at(std::size_t index);

private:
    std::shared_ptr<backends::Device> m_device;
    std::vector<std::shared_ptr<backends::Stream>> m_streams;
};

/// A callable; the members refer to members of its owner.
struct Runnable {
    const std::string& name;
    const Interface& interface;
    const Callable& callable;
    const std::shared_ptr<backends::Device>& device;
    StreamPool& streams;
    const ProgramUse* programs = nullptr; ///< null: programs belong to the device's cache
};

/// Calls the callable on `stream`. Throws the callable's exceptions. Joins the forks that the callable left open,
/// except in a capture, because end_capture refuses them.
void run(const Runnable& runnable, const RunInputs& inputs, ScratchPool& scratch,
         const std::shared_ptr<backends::Stream>& stream, RunContext& context);

/// Returns a function that does the same for recordings and verification: an exception becomes an Error (not_recordable
/// unless it is an Exception). The objects that `runnable` refers to must outlive the result.
[[nodiscard]] RunOnce run_once(const Runnable& runnable);

} // namespace warmgraph
