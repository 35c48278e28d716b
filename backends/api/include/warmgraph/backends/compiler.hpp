// Compiling sources. The compiler is separate from the device because a process that only replays never needs it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// The compiler and its target: with source, options and headers, they decide the compiled code.
struct CompilerIdentity {
    std::string compiler;            ///< name, version and build; empty: no compiler
    std::string target;              ///< e.g. "sm_90", or an OpenCL device
    std::vector<std::string> also{}; ///< other targets whose code this device runs: "sm_90a"
};

/// The result of compiling a program.
struct CompiledImage {
    Bytes image;
    Digest origin;                    ///< Module::origin of the module that was compiled
    std::vector<std::string> ready{}; ///< the launches for which `image` contains code, as text of the backend (PoCL)
};

/// Allows or forbids compiling a loaded module from its source when its image lacks code for a new launch.
enum class Recompile : std::uint8_t { if_needed, never };

/// Lives as long as its device. Thread-safe.
class Compiler {
public:
    virtual ~Compiler() = default;
    /// Compiles and loads a source. compile_failed carries the compiler's log.
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> compile(std::string_view source,
                                                                  std::string_view options) = 0;

    /// True if compile() leaves part of the work to the first launch of each kernel and geometry (PoCL).
    [[nodiscard]] virtual bool compiles_at_launch() const noexcept { return false; }

    // --- Functions for code that stores compiled programs
    /// Returns the identity for these options. unsupported: compiled programs cannot be stored.
    [[nodiscard]] virtual Result<CompilerIdentity> identity(std::string_view options)
    {
        return fail(ErrorCode::unsupported, "this backend's compiled programs cannot be stored (options: {})", options);
    }
    /// Returns the compiled form of a module from compile(), if that takes no more work. nullopt: not yet available, or
    /// not a compiled module. REQUIRES: the module belongs to this compiler's device.
    [[nodiscard]] virtual std::optional<CompiledImage> compiled(Module& module)
    {
        static_cast<void>(module);
        return std::nullopt;
    }
    /// Makes the module that compile() would make for this source and these options, from an earlier result of
    /// compiled(). corrupt, stale: the driver does not accept `compiled`.
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> load_compiled(std::string_view source,
                                                                        std::string_view options,
                                                                        const CompiledImage& compiled, Recompile again)
    {
        static_cast<void>(again);
        return fail(ErrorCode::unsupported,
                    "this backend loads no compiled programs ({} bytes of source, {} of options, {})", source.size(),
                    options.size(), compiled.image.size());
    }
};

/// Compiles for a device that need not be open, or even present in this machine. Thread-safe.
class AheadCompiler {
public:
    virtual ~AheadCompiler() = default;
    /// Returns the result that Compiler::identity would give on the target device.
    [[nodiscard]] virtual Result<CompilerIdentity> identity(std::string_view options) = 0;
    /// Returns the result that Compiler::compiled would give on the target device. compile_failed carries the
    /// compiler's log.
    [[nodiscard]] virtual Result<CompiledImage> compile(std::string_view source, std::string_view options) = 0;
};

} // namespace warmgraph::backends
