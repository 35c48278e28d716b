// Device code of the fake: an ELF file of the form of a cubin, so that what reads and cuts cubins works on it. A kernel's
// .text section holds its arguments' kinds as text in place of instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace fake_cuda {

struct Variable {
    std::string name;
    std::vector<std::byte> initial;
};

struct Image {
    int architecture = 0; ///< 90: sm_90
    struct Entry {
        std::string name;
        std::vector<ArgumentKind> arguments;
    };
    std::vector<Entry> kernels;
    std::vector<Variable> variables;
};

[[nodiscard]] std::vector<std::byte> write_image(const Image& image);
/// nullopt where the bytes are no image. `data` has no length, as cuModuleLoadData's.
[[nodiscard]] std::optional<Image> read_image(const void* data);
/// Bytes of the image at `data`, which read_image accepted.
[[nodiscard]] std::size_t size_of_image(const void* data);

} // namespace fake_cuda
