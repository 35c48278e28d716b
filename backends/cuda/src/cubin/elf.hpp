// A view of a 64-bit little-endian ELF file of the CUDA tools. Every offset is checked: images may be hostile.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda::elf {

inline constexpr std::uint16_t k_machine_cuda = 190;
inline constexpr std::uint32_t k_null = 0, k_progbits = 1, k_symtab = 2, k_strtab = 3, k_rela = 4, k_note = 7,
                               k_nobits = 8, k_rel = 9;     // section types
inline constexpr std::uint64_t k_info_link = 0x40;          // section flag: sh_info is a section
inline constexpr std::uint8_t k_object = 1, k_function = 2; // symbol types
inline constexpr std::uint16_t k_first_reserved_section = 0xff00;

struct FileHeader {
    std::uint8_t ident[16];
    std::uint16_t type, machine;
    std::uint32_t version;
    std::uint64_t entry, segments_offset, sections_offset;
    std::uint32_t flags;
    std::uint16_t header_size, segment_size, segment_count, section_size, section_count, names_section;
};
struct Section {
    std::uint32_t name, type;
    std::uint64_t flags, address, offset, size;
    std::uint32_t link, info;
    std::uint64_t alignment, entry_size;
};
struct Symbol {
    std::uint32_t name;
    std::uint8_t info, other;
    std::uint16_t section;
    std::uint64_t value, size;
    [[nodiscard]] std::uint8_t type() const noexcept { return info & 0xfU; }
    [[nodiscard]] std::uint8_t binding() const noexcept { return static_cast<std::uint8_t>(info >> 4U); }
};
struct Segment {
    std::uint32_t type, flags;
    std::uint64_t offset, virtual_address, physical_address, file_size, memory_size, alignment;
};
static_assert(sizeof(FileHeader) == 64 && sizeof(Section) == 64 && sizeof(Symbol) == 24 && sizeof(Segment) == 56);

/// A view: the bytes must outlive it.
class File {
public:
    /// unsupported: not this kind of file. corrupt: parts of the file contradict each other (the message names the
    /// place).
    [[nodiscard]] static Result<File> parse(ByteView bytes);

    [[nodiscard]] ByteView bytes() const noexcept { return m_bytes; }
    [[nodiscard]] const FileHeader& header() const noexcept { return m_header; }
    [[nodiscard]] std::span<const Section> sections() const noexcept { return m_sections; }
    [[nodiscard]] std::span<const Segment> segments() const noexcept { return m_segments; }
    [[nodiscard]] std::span<const Symbol> symbols() const noexcept { return m_symbols; }
    /// Indices of the symbol table's section and of its names' section.
    [[nodiscard]] std::uint32_t symbol_section() const noexcept { return m_symbol_section; }
    [[nodiscard]] std::uint32_t symbol_names_section() const noexcept { return m_sections[m_symbol_section].link; }

    [[nodiscard]] std::string_view name(const Section& section) const noexcept;
    [[nodiscard]] std::string_view name(const Symbol& symbol) const noexcept;
    /// Returns the section's bytes; empty for sections without bytes in the file.
    [[nodiscard]] ByteView contents(const Section& section) const noexcept;
    /// The section that contains a symbol; 0 if there is none.
    [[nodiscard]] std::uint32_t section_of(const Symbol& symbol) const noexcept;

private:
    [[nodiscard]] Result<void> read_sections();
    [[nodiscard]] Result<void> read_segments();
    [[nodiscard]] Result<void> read_symbols();

    ByteView m_bytes;
    FileHeader m_header{};
    std::vector<Section> m_sections;
    std::vector<Segment> m_segments;
    std::vector<Symbol> m_symbols;
    std::uint32_t m_symbol_section = 0;
};

/// A row of a relocation section.
struct Relocation {
    std::uint64_t offset = 0;
    std::uint32_t symbol = 0, type = 0;
};
[[nodiscard]] constexpr bool is_relocation(const Section& section) noexcept
{
    return section.type == k_rel || section.type == k_rela;
}
/// Bytes of a row: 16, or 24 with an addend.
[[nodiscard]] constexpr std::size_t relocation_size(const Section& section) noexcept
{
    return section.type == k_rela ? 24 : 16;
}
/// Returns the rows; empty if `section` has no relocations. An incomplete last row is ignored.
[[nodiscard]] std::vector<Relocation> relocations(const File& file, const Section& section);

} // namespace warmgraph::backends::cuda::elf
