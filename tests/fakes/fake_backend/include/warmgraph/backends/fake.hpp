// For tests only: a backend on host memory that fails on request, logs its calls and counts live objects.
//
// Its programs are text, one kernel per line, e.g. `kernel add_scalar(memory x, value amount, value n)`. Each line
// names one of the built-in kernels (fake_kernels.cpp) with the kinds of its parameters; elements are i32. Work runs at
// once, in the caller's thread. It is as thread-safe as Device must be.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

enum class FaultLength : std::uint8_t { once, for_ever };

/// Makes the `nth` call of an entry point from now on fail (1 is the next call), either only this call, or this and all
/// later calls. Entry points are named as in device.hpp: "allocate", "reserve_shadow", "upload", "download", "compile",
/// "load", "create_stream", "instantiate"; for a module "image", "param_count"; for a stream "launch", "copy", "fill",
/// "record_event", "wait", "synchronize", "begin_capture", "end_capture"; for an exec "exec.launch", "exec.update"; for
/// the backend "devices", "open".
struct Fault {
    std::string entry; ///< empty: any entry point
    std::uint64_t nth = 1;
    FaultLength length = FaultLength::once;
    Error error{ErrorCode::driver_failed, "injected fault"};
    std::function<void()> instead{}; ///< runs in place of the failure, in the caller's thread; may end the process
};

/// The numbers of live objects. All are zero when nothing leaks.
struct LiveObjects {
    std::int64_t allocations = 0; ///< shadows are included
    std::int64_t modules = 0;
    std::int64_t streams = 0;
    std::int64_t execs = 0;
    bool operator==(const LiveObjects&) const = default;
};

struct FakeOptions {
    std::uint32_t devices = 1;
    std::string architecture = "fake-1";
    std::string driver_version = "1.0";
    std::string runtime_version = "1.0";
    std::uint32_t memory_alignment = 128;
    std::uint64_t memory = 1ULL << 30; ///< bytes of one device's memory; larger allocations fail with out_of_memory
};

class FakeBackend : public Backend {
public:
    virtual void inject(Fault fault) = 0;
    virtual void clear_faults() = 0;
    /// The entry points that were called since clear_calls(), in order. Calls that failed are included.
    [[nodiscard]] virtual std::vector<std::string> calls() const = 0;
    [[nodiscard]] virtual std::uint64_t call_count(std::string_view entry) const = 0;
    virtual void clear_calls() = 0;
    [[nodiscard]] virtual LiveObjects live() const = 0;
};

[[nodiscard]] std::shared_ptr<FakeBackend> make_fake_backend(const FakeOptions& options = {});

} // namespace warmgraph::backends
