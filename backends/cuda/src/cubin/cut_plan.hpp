// Which sections and symbols of a cubin go when only some kernels stay.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "elf.hpp"

namespace warmgraph::backends::cuda {

/// What a section is for. Anything else is refused.
enum class SectionRole : std::uint8_t {
    none,        ///< null section
    table,       ///< symbols and names
    kept,        ///< stays as it is: notes, data, constants of the whole image
    code,        ///< .text.F
    of_code,     ///< belongs to one function: .nv.info.F, .nv.shared.F, .nv.constant0.F ...
    relocations, ///< of its target, sh_info
    frames,      ///< .debug_frame: stays, its relocations lose rows
    debug,       ///< other debug information
    info,        ///< .nv.info: rows about functions
    callgraph,
    prototypes,
};

struct CutPlan {
    std::vector<SectionRole> roles;     ///< by section
    std::vector<std::uint32_t> owner;   ///< by section: the code section it belongs to; itself for code; 0 for none
    std::vector<bool> removed_sections; ///< by section
    std::vector<bool> removed_symbols;  ///< by symbol

    [[nodiscard]] bool removes_symbol(std::uint32_t symbol) const noexcept
    {
        return symbol < removed_symbols.size() && removed_symbols[symbol];
    }
};

/// unsupported: an unknown section, or a kernel that is not there (named).
[[nodiscard]] Result<CutPlan> plan_cut(const elf::File& file, std::span<const std::string> kernels);

} // namespace warmgraph::backends::cuda
