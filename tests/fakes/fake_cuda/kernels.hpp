// The kernels that fake programs may name: those of the fake backend (fake_backend/src/fake_kernels.cpp).
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
    local,  ///< dynamic shared memory: no argument of the kernel
};

/// A kernel's arguments as the launch gave them.
struct Arguments {
    std::uint64_t items = 0; ///< threads of the whole grid
    std::vector<CUdeviceptr> memory;
    std::vector<std::int32_t> values;
};

struct Kernel {
    std::string_view name;
    std::vector<ArgumentKind> arguments;
    /// False when it touched memory that is not there.
    std::function<bool(const Arguments&)> run;
};

/// nullptr: there is none of that name.
[[nodiscard]] const Kernel* find_kernel(std::string_view name);

/// "memory,value": as images hold it. nullopt where a word is unknown.
[[nodiscard]] std::string to_text(std::span<const ArgumentKind> arguments);
[[nodiscard]] std::optional<std::vector<ArgumentKind>> arguments_of(std::string_view text);

} // namespace fake_cuda
