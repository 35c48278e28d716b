// The meaning of a cubin's symbols and sections. The numbers were derived from nvcc 13; there is no public list.
#pragma once

#include <string_view>

#include "elf.hpp"

namespace warmgraph::backends::cuda::elf {

inline constexpr std::uint8_t k_entry = 0x10;   // symbol: a kernel
inline constexpr std::uint8_t k_managed = 0x04; // symbol: a __managed__ variable

[[nodiscard]] inline bool is_code(std::string_view section) noexcept { return section.starts_with(".text."); }

[[nodiscard]] inline bool is_global_memory(std::string_view section) noexcept
{
    return section == ".nv.global" || section == ".nv.global.init";
}

[[nodiscard]] inline bool is_kernel(const File& file, const Symbol& symbol) noexcept
{
    return symbol.type() == k_function && (symbol.other & k_entry) != 0 && file.section_of(symbol) != 0 &&
           is_code(file.name(file.sections()[symbol.section]));
}

} // namespace warmgraph::backends::cuda::elf
