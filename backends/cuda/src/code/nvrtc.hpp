// NVRTC, found at run time when the first source is compiled. Replay never needs it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nvrtc.h>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

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
};

/// Words at blanks; '...' and "..." keep blanks within a word, nothing else is special.
[[nodiscard]] Result<std::vector<std::string>> split_options(std::string_view options);

} // namespace warmgraph::backends::cuda
