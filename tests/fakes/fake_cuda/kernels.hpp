// The kernels that programs of the fake driver may name. They are the same as the fake backend's
// (fake_backend/src/fake_kernels.cpp).
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
    memory, ///< a pointer of 8 bytes
    value,  ///< an i32
    local,  ///< dynamic shared memory: not an argument of the kernel
};

/// The arguments of one launch.
struct Arguments {
    std::uint64_t items = 0; ///< number of threads in the whole grid
    std::vector<CUdeviceptr> memory;
    std::vector<std::int32_t> values;
};

struct Kernel {
    std::string_view name;
    std::vector<ArgumentKind> arguments;
    /// Runs the kernel. Returns false when the kernel accessed unallocated memory.
    std::function<bool(const Arguments&)> run;
};

/// The kernel with this name. Returns nullptr when there is no such kernel.
[[nodiscard]] const Kernel* find_kernel(std::string_view name);

/// The kinds as a text for images, e.g. "memory,value".
[[nodiscard]] std::string to_text(std::span<const ArgumentKind> arguments);
[[nodiscard]] std::optional<std::vector<ArgumentKind>> arguments_of(std::string_view text);

} // namespace fake_cuda
