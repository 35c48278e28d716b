// Decides which sections and symbols of a cubin to remove when only some kernels stay.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "elf.hpp"

namespace warmgraph::backends::cuda {

/// The purpose of a section. A section with another purpose is refused.
enum class SectionRole : std::uint8_t {
    none,        ///< null section
    table,       ///< symbols and names
    kept,        ///< unchanged: notes, data, constants of the whole image
    code,        ///< .text.F
    of_code,     ///< belongs to one function: .nv.info.F, .nv.shared.F, .nv.constant0.F ...
    relocations, ///< relocations of the section that sh_info names
    frames,      ///< .debug_frame: stays, but loses rows of its relocations
    debug,       ///< other debug information
    info,        ///< .nv.info: rows about functions
    callgraph,
    prototypes,
};

struct CutPlan {
    std::vector<SectionRole> roles;     ///< the role of each section
    std::vector<std::uint32_t> owner;   ///< for each section: its code section, for code itself; 0: it has none
    std::vector<bool> removed_sections; ///< for each section: true if it is removed
    std::vector<bool> removed_symbols;  ///< for each symbol: true if it is removed

    [[nodiscard]] bool removes_symbol(std::uint32_t symbol) const noexcept
    {
        return symbol < removed_symbols.size() && removed_symbols[symbol];
    }
};

/// unsupported: an unknown section, or a missing kernel, which the message names.
[[nodiscard]] Result<CutPlan> plan_cut(const elf::File& file, std::span<const std::string> kernels);

} // namespace warmgraph::backends::cuda
