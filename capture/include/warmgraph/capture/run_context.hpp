// The state of one run of a callable on this thread. Device, Buffer and Stream ask for it, so that they can refuse a
// call that a graph cannot hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/phases.hpp"

namespace warmgraph {

/// A program that a run launched.
struct LaunchedProgram {
    std::shared_ptr<backends::Module> module; ///< kept alive until the graph is stored
    std::string name;
    Digest source; ///< digest of the program's source and options
};

struct RunContext {
    std::string function;
    bool capturing = false;
    Phases* phases = nullptr;
    std::map<backends::Module*, LaunchedProgram> modules;
    /// The streams of this run: the recorder's stream and the streams forked from it. Each fork adds its stream.
    std::vector<const backends::Stream*> streams;
    std::vector<const backends::Event*> events; ///< events recorded in these streams
    std::optional<std::string> stray; ///< the first work enqueued in another stream: "kernel 'add' in another stream"
    std::optional<Error> refusal;     ///< the first forbidden call, kept even when the callable swallows the exception
};

/// Returns the context of this thread's run; nullptr outside a wrapped callable.
[[nodiscard]] RunContext* current_run() noexcept;

class RunScope {
public:
    explicit RunScope(RunContext& run) noexcept;
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;
    ~RunScope();

private:
    RunContext* m_outer;
};

/// Fails with not_recordable while this thread captures a function. The message names `call`.
[[nodiscard]] Result<void> refuse_while_capturing(std::string_view call, std::string_view cure);

} // namespace warmgraph
