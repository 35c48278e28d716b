// Writes a cubin with changed and removed sections. Section numbers stay.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "elf.hpp"

namespace warmgraph::backends::cuda {

struct ElfChange {
    std::vector<bool> removed;                ///< for each section: true if a null section replaces it
    std::map<std::uint32_t, Bytes> contents;  ///< new contents, by section
    std::vector<std::uint32_t> section_names; ///< for each section: the new sh_name
};

/// Sections keep their order and alignment; the tables of headers come last; segments cover the remaining sections that
/// they covered before. unsupported: a segment ends inside a section.
[[nodiscard]] Result<Bytes> write_elf(const elf::File& file, const ElfChange& change);

} // namespace warmgraph::backends::cuda
