// Compiles programs ahead of time into the folder, in the same way as a Program on the device does.
#pragma once

#include <cstdint>
#include <memory>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/precompile/program_cache.hpp"
#include "warmgraph/precompile/program_library.hpp"

namespace warmgraph::precompile {

struct AheadResult {
    enum class Outcome : std::uint8_t {
        compiled,
        there
    } outcome = Outcome::compiled; ///< there: the program was already stored
    std::string target;
    double ms = 0;           ///< milliseconds of compiling
    std::uint64_t bytes = 0; ///< size of the image
};

/// Compiles a program and stores it. `backend`: as Device::backend. Errors: unsupported (a look-up could not find the
/// program again, because of its headers, options or compiler), the errors of the compiler, and the errors of the
/// folder. Thread-safe.
[[nodiscard]] Result<AheadResult> compile_ahead(backends::AheadCompiler& compiler, std::string_view backend,
                                                const ProgramText& text, const ProgramLibrary& library);

/// Returns a compiler that compiles with a device of this machine, for backends that cannot compile for another device.
[[nodiscard]] std::unique_ptr<backends::AheadCompiler> ahead_compiler_of(std::shared_ptr<backends::Device> device);

} // namespace warmgraph::precompile
