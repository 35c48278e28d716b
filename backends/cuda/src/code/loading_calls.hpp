// The driver calls during which device code may be loaded, and the module that each is about.
#pragma once

#include <optional>
#include <span>

#include <cuda.h>
#include <cupti.h>

namespace warmgraph::backends::cuda {

/// One of them is set.
struct CallSubject {
    CUmodule made = nullptr; ///< by this call
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr; ///< or a CUkernel in disguise, as launches allow
};

/// All callbacks to subscribe to for this.
[[nodiscard]] std::span<const CUpti_CallbackId> loading_calls() noexcept;
[[nodiscard]] bool is_loading_call(CUpti_CallbackId call) noexcept;
/// What a call that succeeded was about; nullopt for another call. `params` is CUpti_CallbackData::functionParams.
[[nodiscard]] std::optional<CallSubject> subject_of(CUpti_CallbackId call, const void* params) noexcept;

/// A variable that a call asked the driver for; of the module, or of the library.
struct AskedVariable {
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    const char* name = nullptr;
};
/// Of a call that succeeded.
[[nodiscard]] std::optional<AskedVariable> asked_variable(CUpti_CallbackId call, const void* params) noexcept;

/// Code that a call loaded from memory; either handle. Where it came from a file, `code` is null.
struct LoadedCode {
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    const void* code = nullptr; ///< a cubin, PTX, or what nvcc wraps around a fat binary in the program's data
};
/// Of a call that succeeded.
[[nodiscard]] std::optional<LoadedCode> loaded_code(CUpti_CallbackId call, const void* params) noexcept;

} // namespace warmgraph::backends::cuda
