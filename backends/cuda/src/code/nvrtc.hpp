// NVRTC, found at run time when the first source is compiled. Replay never needs it.
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

/// Thread-safe (NVRTC is). Never unloaded.
class Nvrtc {
public:
    /// `library`: a name or path, empty for $WARMGRAPH_NVRTC, else the usual names. Loaded once for a name; a failure is
    /// tried again by the next call. not_found says what was tried and the cure.
    [[nodiscard]] static Result<std::shared_ptr<const Nvrtc>> load(const std::string& library);

    /// A cubin for `architecture` ("sm_90"), unless the options name another. compile_failed carries the log.
    [[nodiscard]] Result<Bytes> compile(std::string_view source, const std::vector<std::string>& options,
                                        const std::string& architecture) const;
    /// Of compile(): Module::origin.
    [[nodiscard]] Digest origin_of(std::string_view source, std::string_view options,
                                   const std::string& architecture) const;
    /// "NVRTC 13.0 (build 65be0db342ad51a0)": what is compiled by another build may be other code.
    /// nullopt: the library does not tell its build.
    [[nodiscard]] std::optional<std::string> identity() const;
    /// As CompilerIdentity::compiler; unsupported: what is compiled cannot be kept.
    [[nodiscard]] Result<std::string> compiler() const;
    /// "sm_75", "sm_80" ...; empty where it does not tell.
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
    decltype(&::nvrtcGetNumSupportedArchs) m_arch_count = nullptr; ///< null in an older one, as the next
    decltype(&::nvrtcGetSupportedArchs) m_archs = nullptr;
};

/// What "--gpu-architecture=sm_90", "-arch sm_90" or "-arch=sm_90" names.
[[nodiscard]] std::optional<std::string> named_architecture(const std::vector<std::string>& options);

/// Words at blanks; '...' and "..." keep blanks within a word, nothing else is special.
[[nodiscard]] Result<std::vector<std::string>> split_options(std::string_view options);

} // namespace warmgraph::backends::cuda
