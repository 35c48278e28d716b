// The driver calls during which device code may be loaded, and the module that each one concerns.
#pragma once

#include <optional>
#include <span>

#include <cuda.h>
#include <cupti.h>

namespace warmgraph::backends::cuda {

/// The object that a call concerns. One member is set.
struct CallSubject {
    CUmodule made = nullptr; ///< created by this call
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr; ///< may be a CUkernel, as launches allow
};

/// The callbacks to subscribe to.
[[nodiscard]] std::span<const CUpti_CallbackId> loading_calls() noexcept;
[[nodiscard]] bool is_loading_call(CUpti_CallbackId call) noexcept;
/// The subject of a call that succeeded; nullopt for other calls. `params` is CUpti_CallbackData::functionParams.
[[nodiscard]] std::optional<CallSubject> subject_of(CUpti_CallbackId call, const void* params) noexcept;

/// A variable whose address a call requested, of a module or of a library.
struct VariableQuery {
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    const char* name = nullptr;
};
/// Returns the variable whose address the call requested; nullopt for other calls. REQUIRES: the call succeeded.
[[nodiscard]] std::optional<VariableQuery> variable_query(CUpti_CallbackId call, const void* params) noexcept;

/// Code that a call loaded. One handle is set. `code` is null if the code came from a file.
struct LoadedCode {
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    const void* code = nullptr; ///< a cubin, PTX, or nvcc's wrapper around a fat binary in the program's data
};
/// Returns the code that the call loaded; nullopt for other calls. REQUIRES: the call succeeded.
[[nodiscard]] std::optional<LoadedCode> loaded_code(CUpti_CallbackId call, const void* params) noexcept;

} // namespace warmgraph::backends::cuda
