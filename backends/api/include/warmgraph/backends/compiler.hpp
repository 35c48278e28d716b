// Compiling, apart from the device that the code is for: what a process that only replays never needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Who compiles, and for what: beside source, options and the contents of headers all that decides what comes of it.
struct CompilerIdentity {
    std::string compiler;            ///< with its version and build; empty: there is none here
    std::string target;              ///< "sm_90"; an OpenCL device
    std::vector<std::string> also{}; ///< other targets whose code this device runs: "sm_90a"
};

/// What a compiler made of a program.
struct Compiled {
    Bytes image;
    Digest origin;                    ///< Module::origin of the module that was compiled
    std::vector<std::string> ready{}; ///< launches that it holds code for, in the backend's words (PoCL); others: empty
};

/// May a module that was loaded be compiled from its source after all, where its image lacks what was launched since?
enum class Recompile : std::uint8_t { if_needed, never };

/// Lives as long as its device. Thread-safe.
class Compiler {
public:
    virtual ~Compiler() = default;
    /// compile_failed carries the compiler's log.
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> compile(std::string_view source,
                                                                  std::string_view options) = 0;

    /// Does compile() leave a part of the work to the first launch of each kernel and geometry (PoCL)?
    [[nodiscard]] virtual bool compiles_at_launch() const noexcept { return false; }

    // --- for those who keep what was compiled
    /// For these options. unsupported: nothing can be kept.
    [[nodiscard]] virtual Result<CompilerIdentity> identity(std::string_view options)
    {
        return fail(ErrorCode::unsupported, "this backend's compiled programs cannot be kept (options: {})", options);
    }
    /// What a module of compile()'s was compiled to, as far as that is there without more work. nullopt: not yet, or it
    /// was not compiled. REQUIRES: the module is of this compiler's device.
    [[nodiscard]] virtual std::optional<Compiled> compiled(Module& module)
    {
        static_cast<void>(module);
        return std::nullopt;
    }
    /// The module that compile() would give for this source and these options. `compiled` is what such a module gave.
    /// corrupt, stale: the driver does not take it.
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> load_compiled(std::string_view source,
                                                                        std::string_view options,
                                                                        const Compiled& compiled, Recompile again)
    {
        static_cast<void>(again);
        return fail(ErrorCode::unsupported,
                    "this backend loads no compiled programs ({} bytes of source, {} of options, {})", source.size(),
                    options.size(), compiled.image.size());
    }
};

/// Compiles ahead, also for a device that is not here. Thread-safe.
class AheadCompiler {
public:
    virtual ~AheadCompiler() = default;
    /// As Compiler::identity of such a device.
    [[nodiscard]] virtual Result<CompilerIdentity> identity(std::string_view options) = 0;
    /// What Compiler::compiled gives there. compile_failed carries the compiler's log.
    [[nodiscard]] virtual Result<Compiled> compile(std::string_view source, std::string_view options) = 0;
};

} // namespace warmgraph::backends
