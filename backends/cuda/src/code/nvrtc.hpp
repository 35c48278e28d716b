// NVRTC, loaded at run time for the first source. Replay never needs it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nvrtc.h>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::backends::cuda {

/// Thread-safe, because NVRTC is. The library is never unloaded.
class Nvrtc {
public:
    /// `library` is a name or path. Empty means $WARMGRAPH_NVRTC, else the usual names. Each name is loaded once; after
    /// a failure the next call tries again. not_found lists the attempts and the cure.
    [[nodiscard]] static Result<std::shared_ptr<const Nvrtc>> load(const std::string& library);

    /// Compiles a cubin for `architecture` ("sm_90") or for the one in the options. compile_failed carries the log.
    [[nodiscard]] Result<Bytes> compile(std::string_view source, const std::vector<std::string>& options,
                                        const std::string& architecture) const;
    /// Returns the Module::origin for compile() with these arguments.
    [[nodiscard]] Digest origin_of(std::string_view source, std::string_view options,
                                   const std::string& architecture) const;
    /// Returns e.g. "NVRTC 13.0 (build 65be0db342ad51a0)". The build counts, because another build may generate other
    /// code. nullopt: the library has no build id.
    [[nodiscard]] std::optional<std::string> identity() const;
    /// The value for CompilerIdentity::compiler. unsupported: compiled programs cannot be stored.
    [[nodiscard]] Result<std::string> compiler() const;
    /// Returns the architectures that the library supports: "sm_75", "sm_80" ...; empty if it cannot list them.
    [[nodiscard]] std::vector<std::string> architectures() const;
    /// "13.0"
    [[nodiscard]] const std::string& version() const noexcept { return m_version; }
    [[nodiscard]] const std::string& path() const noexcept { return m_path; }

private:
    class Program;
    [[nodiscard]] static Result<std::shared_ptr<const Nvrtc>> open(const std::vector<std::string>& names);
    [[nodiscard]] bool resolve(void* library);

    std::string m_path;
    std::string m_version;
    decltype(&::nvrtcGetErrorString) m_error_string = nullptr;
    decltype(&::nvrtcVersion) m_get_version = nullptr;
    decltype(&::nvrtcCreateProgram) m_create = nullptr;
    decltype(&::nvrtcDestroyProgram) m_destroy = nullptr;
    decltype(&::nvrtcCompileProgram) m_compile = nullptr;
    decltype(&::nvrtcGetCUBINSize) m_cubin_size = nullptr;
    decltype(&::nvrtcGetCUBIN) m_cubin = nullptr;
    decltype(&::nvrtcGetProgramLogSize) m_log_size = nullptr;
    decltype(&::nvrtcGetProgramLog) m_log = nullptr;
    decltype(&::nvrtcGetNumSupportedArchs) m_arch_count = nullptr; ///< this and the next are null in older libraries
    decltype(&::nvrtcGetSupportedArchs) m_archs = nullptr;
};

/// Returns the architecture that the options name, as in "--gpu-architecture=sm_90", "-arch sm_90" or "-arch=sm_90".
[[nodiscard]] std::optional<std::string> named_architecture(const std::vector<std::string>& options);

/// Splits at blanks; '...' and "..." keep blanks inside a word. No other character is special.
[[nodiscard]] Result<std::vector<std::string>> split_options(std::string_view options);

} // namespace warmgraph::backends::cuda
