// Writes a cubin anew: some sections changed, some gone, numbers as before.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "elf.hpp"

namespace warmgraph::backends::cuda {

struct ElfChange {
    std::vector<bool> removed;                ///< by section: becomes a null section
    std::map<std::uint32_t, Bytes> contents;  ///< by section: instead of what the file has
    std::vector<std::uint32_t> section_names; ///< by section: sh_name
};

/// Sections stay in the order they had in the file, at their alignment; tables of headers come last; segments cover what is
/// left of the sections that they covered. unsupported where a segment cuts through a section.
[[nodiscard]] Result<Bytes> write_elf(const elf::File& file, const ElfChange& change);

} // namespace warmgraph::backends::cuda
