// Compiling ahead of time: into the folder, as a Program on the device would.
#pragma once

#include <cstdint>
#include <memory>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/precompile/program_cache.hpp"
#include "warmgraph/precompile/program_library.hpp"

namespace warmgraph::precompile {

struct Ahead {
    enum class How : std::uint8_t { compiled, there } how = How::compiled; ///< there: it is stored already
    std::string target;
    double ms = 0;           ///< that it took
    std::uint64_t bytes = 0; ///< of the image
};

/// `backend`: as Device::backend. unsupported: it could not be found again (its headers, its options, its compiler); what
/// the compiler says; and why the folder cannot be written. Thread-safe.
[[nodiscard]] Result<Ahead> compile_ahead(backends::AheadCompiler& compiler, std::string_view backend,
                                          const ProgramText& text, const ProgramLibrary& library);

/// Through a device that is here, for backends that compile for no other.
[[nodiscard]] std::unique_ptr<backends::AheadCompiler> ahead_compiler_of(std::shared_ptr<backends::Device> device);

} // namespace warmgraph::precompile
