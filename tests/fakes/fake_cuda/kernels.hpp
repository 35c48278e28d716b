// The kernels that fake programs may name: the fake backend's (fake_backend/src/fake_kernels.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>

namespace fake_cuda {

enum class ArgumentKind : std::uint8_t {
    memory, ///< a pointer, 8 bytes
    value,  ///< an i32
    local,  ///< dynamic shared memory: not an argument of the kernel
};

/// The arguments of one launch.
struct Arguments {
    std::uint64_t items = 0; ///< threads of the whole grid
    std::vector<CUdeviceptr> memory;
    std::vector<std::int32_t> values;
};

struct Kernel {
    std::string_view name;
    std::vector<ArgumentKind> arguments;
    /// Returns false when the kernel accessed unallocated memory.
    std::function<bool(const Arguments&)> run;
};

/// Returns nullptr when no kernel has this name.
[[nodiscard]] const Kernel* find_kernel(std::string_view name);

/// The form in images, e.g. "memory,value". nullopt when a word is unknown.
[[nodiscard]] std::string to_text(std::span<const ArgumentKind> arguments);
[[nodiscard]] std::optional<std::vector<ArgumentKind>> arguments_of(std::string_view text);

} // namespace fake_cuda
