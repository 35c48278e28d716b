// Which variables in global memory are state: something that code could write while another function runs the same module.
#pragma once

#include <cstdint>
#include <string_view>

#include "elf.hpp"

namespace warmgraph::backends::cuda {

/// Whether the symbol's name, as the compiler mangles it, is one of an empty object of cuda::std, Thrust, CUB or CuTe
/// (`cuda::std::in_place`, `thrust::seq`, `thrust::placeholders::_1`), and `size` is an empty object's. They have no
/// members, so there is no value in them that code could write or read; whoever includes the headers gets them all.
[[nodiscard]] bool is_empty_object(std::string_view symbol, std::uint64_t size);

/// Whether the variable is one of the tables that CUDA's headers and libraries bring along (of sine and cosine, of
/// cuRAND's generators), and holds what these do to the last bit. Their code reads them alone.
[[nodiscard]] bool is_known_table(std::string_view symbol, ByteView initial);

/// Whether there is a variable in global memory, written or not, that may be state. None are: the two kinds above, and
/// the compilers' own texts, Triton's among them.
[[nodiscard]] bool keeps_state(const elf::File& file);

} // namespace warmgraph::backends::cuda
