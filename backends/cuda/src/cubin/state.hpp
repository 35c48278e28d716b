// Finds variables in global memory that are state: code may write them while another function runs the module.
#pragma once

#include <cstdint>
#include <string_view>

#include "elf.hpp"

namespace warmgraph::backends::cuda {

/// True if the mangled name and `size` are those of an empty object of cuda::std, Thrust, CUB or CuTe
/// (`cuda::std::in_place`, `thrust::seq`, `thrust::placeholders::_1`). An empty object has no members, so it holds no
/// value. All code that includes these headers contains such objects.
[[nodiscard]] bool is_empty_object(std::string_view symbol, std::uint64_t size);

/// True if the variable is a table from CUDA's headers and libraries (for sine and cosine, for cuRAND's generators)
/// with exactly the known contents. The code of CUDA only reads these tables.
[[nodiscard]] bool is_known_table(std::string_view symbol, ByteView initial);

/// True if some variable in global memory may be state, even if no code writes it. Empty objects, known tables, and the
/// texts that compilers (also Triton) make are not state.
[[nodiscard]] bool keeps_state(const elf::File& file);

} // namespace warmgraph::backends::cuda
