// What the callable that runs on this thread is being run for. Device, Buffer and Stream ask it, so that a call that
// a graph cannot hold is refused by name instead of being lost.
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
    Digest source; ///< of its source and options
};

struct RunContext {
    std::string function;
    bool capturing = false;
    Phases* phases = nullptr;
    std::map<backends::Module*, LaunchedProgram> modules;
    /// Streams of this run: the recorder's and those forked from it. Changed by whoever forks.
    std::vector<const backends::Stream*> streams;
    std::vector<const backends::Event*> events; ///< recorded in those
    std::optional<std::string> stray; ///< the first work that went to another stream: "kernel 'add' in another stream"
    std::optional<Error> refusal;     ///< the first forbidden call, kept even when the callable swallows the exception
};

/// nullptr outside a wrapped callable.
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

/// not_recordable when a function is being captured on this thread; `call` is named in the message.
[[nodiscard]] Result<void> refuse_while_capturing(std::string_view call, std::string_view cure);

} // namespace warmgraph
