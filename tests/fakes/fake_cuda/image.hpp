// The device code of the fake driver. It is an ELF file in the form of a cubin, so that the library can read and cut
// it. A kernel's .text section holds the kinds of its arguments as text, in place of instructions.
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
    int architecture = 0; ///< 90 means sm_90
    struct Entry {
        std::string name;
        std::vector<ArgumentKind> arguments;
    };
    std::vector<Entry> kernels;
    std::vector<Variable> variables;
};

[[nodiscard]] std::vector<std::byte> write_image(const Image& image);
/// Reads an image. Returns nullopt when the bytes are not an image. As in cuModuleLoadData, the length of `data` is not
/// given.
[[nodiscard]] std::optional<Image> read_image(const void* data);
/// The size in bytes of the image at `data`, which read_image accepted.
[[nodiscard]] std::size_t size_of_image(const void* data);

} // namespace fake_cuda
