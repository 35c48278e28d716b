// Compiling, apart from the device that the code is for: what a process that only replays never needs.
#pragma once

#include <memory>
#include <string_view>

#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

class Module;

/// Lives as long as its device. Thread-safe.
class Compiler {
public:
    virtual ~Compiler() = default;
    /// compile_failed carries the compiler's log.
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> compile(std::string_view source,
                                                                  std::string_view options) = 0;
};

} // namespace warmgraph::backends
