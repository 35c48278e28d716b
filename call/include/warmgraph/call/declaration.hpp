// The definition of a function, fixed when the function is constructed. The function's parts share the definition
// without a lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/spec.hpp"

namespace warmgraph {

struct Declaration {
    std::string name;
    std::string path;  ///< "model/rank/name", the function's name in the log
    std::string label; ///< "model/function", the function's name in commands
    Spec spec;
    Interface interface;
    Callable callable;                  ///< empty: the function was loaded and can only be replayed
    const void* code = nullptr;         ///< an address in the callable's code; null if there is no callable
    Policy policy = Policy::read_write; ///< policy for graphs, as far as the folder allows it
    bool publishes = false;             ///< whether recordings are stored in the folder
    bool verifies_first = false;        ///< whether the first use of each restored graph is verified
    std::uint64_t verify_every = 0;     ///< each Nth replayed call is verified; 0: no replayed call is verified
    ProgramUse programs;
    cachefmt::FunctionKey key;
    std::shared_ptr<Device::Impl> device;
    DeclaredHandles handles;
    std::uint64_t number = 0; ///< number of the function in this process, for replay::ModuleUser

    [[nodiscard]] const std::shared_ptr<backends::Device>& backend() const noexcept { return device->device; }
};

/// Throws if the thread runs the function's own callable, which holds the locks that `what` would wait for.
void refuse_inside_itself(const std::string& function, std::string_view what);

/// Throws inside any wrapped callable, before it takes a lock: the outer call holds the locks that the inner call would
/// wait for.
void refuse_nested(const std::string& function);

using guards::k_host_memory;

} // namespace warmgraph
