#include "elf.hpp"

#include <cstring>

namespace warmgraph::backends::cuda::elf {

namespace {

// Enough for any mangled name. Without a limit, a hostile table would make reading all names quadratic.
constexpr std::size_t k_longest_name = 16384;
constexpr std::uint64_t k_most_segments = 64; // nvcc writes four to six

bool lies_within(std::uint64_t offset, std::uint64_t size, std::uint64_t total) noexcept
{
    return offset <= total && size <= total - offset;
}

std::string_view name_at(ByteView names, std::uint64_t offset) noexcept
{
    if (offset >= names.size()) return {};
    const std::string_view rest = as_text(names.subspan(static_cast<std::size_t>(offset))).substr(0, k_longest_name);
    const auto end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

template <class T>
std::vector<T> table_at(ByteView bytes, std::uint64_t offset, std::uint64_t count)
{
    std::vector<T> table(static_cast<std::size_t>(count));
    if (!table.empty()) std::memcpy(table.data(), bytes.data() + offset, table.size() * sizeof(T));
    return table;
}

} // namespace

Result<File> File::parse(ByteView bytes)
{
    constexpr std::uint8_t k_start[6] = {0x7f, 'E', 'L', 'F', 2, 1}; // 64 bits, little-endian
    if (bytes.size() < sizeof(FileHeader) || std::memcmp(bytes.data(), k_start, sizeof k_start) != 0)
        return fail(ErrorCode::unsupported, "an image of {} bytes is not a 64-bit ELF file, expected a cubin",
                    bytes.size());
    File file;
    file.m_bytes = bytes;
    file.m_header = load<FileHeader>(bytes);
    if (file.m_header.machine != k_machine_cuda)
        return fail(ErrorCode::unsupported, "an ELF file for machine {}, expected {} (CUDA)", file.m_header.machine,
                    k_machine_cuda);
    if (auto read = file.read_sections(); !read) return std::unexpected(std::move(read.error()));
    if (auto read = file.read_segments(); !read) return std::unexpected(std::move(read.error()));
    if (auto read = file.read_symbols(); !read) return std::unexpected(std::move(read.error()));
    return file;
}

Result<void> File::read_sections()
{
    const std::uint64_t count = m_header.section_count;
    if (count == 0 || count >= k_first_reserved_section || m_header.section_size != sizeof(Section))
        return fail(ErrorCode::unsupported, "a cubin with {} section headers of {} bytes, expected 1 to {} of {}",
                    count, m_header.section_size, k_first_reserved_section - 1, sizeof(Section));
    if (!lies_within(m_header.sections_offset, count * sizeof(Section), m_bytes.size()) ||
        m_header.names_section >= count)
        return fail(ErrorCode::corrupt, "a cubin's {} section headers at {} are not within its {} bytes", count,
                    m_header.sections_offset, m_bytes.size());
    m_sections = table_at<Section>(m_bytes, m_header.sections_offset, count);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < m_sections.size(); ++i) {
        const Section& section = m_sections[i];
        if (section.type == k_null || section.type == k_nobits) continue;
        if (!lies_within(section.offset, section.size, m_bytes.size()))
            return fail(ErrorCode::corrupt, "a cubin's section {} at {} of {} bytes is not within its {} bytes", i,
                        section.offset, section.size, m_bytes.size());
        total += section.size;
    }
    // Some sections overlap (Mercury shares contents). Without a limit a hostile file could take hours to read.
    if (total > 2 * m_bytes.size())
        return fail(ErrorCode::corrupt, "a cubin's sections hold {} bytes, but the file has {}", total, m_bytes.size());
    return {};
}

Result<void> File::read_segments()
{
    const std::uint64_t count = m_header.segment_count;
    if (count == 0) return {};
    if (count > k_most_segments)
        return fail(ErrorCode::unsupported, "a cubin with {} program headers, expected at most {}", count,
                    k_most_segments);
    if (m_header.segment_size != sizeof(Segment) ||
        !lies_within(m_header.segments_offset, count * sizeof(Segment), m_bytes.size()))
        return fail(ErrorCode::corrupt, "a cubin's {} program headers of {} bytes at {} are not within its {} bytes",
                    count, m_header.segment_size, m_header.segments_offset, m_bytes.size());
    m_segments = table_at<Segment>(m_bytes, m_header.segments_offset, count);
    return {};
}

Result<void> File::read_symbols()
{
    for (std::uint32_t i = 0; i < m_sections.size(); ++i) {
        if (m_sections[i].type != k_symtab) continue;
        if (m_symbol_section != 0) return fail(ErrorCode::unsupported, "a cubin with two symbol tables, expected one");
        m_symbol_section = i;
    }
    const Section& table = m_sections[m_symbol_section];
    if (m_symbol_section == 0 || table.size % sizeof(Symbol) != 0 || table.link >= m_sections.size() ||
        m_sections[table.link].type != k_strtab)
        return fail(ErrorCode::corrupt, "a cubin without a usable symbol table");
    m_symbols = table_at<Symbol>(m_bytes, table.offset, table.size / sizeof(Symbol));
    for (std::size_t i = 0; i < m_symbols.size(); ++i) {
        const std::uint16_t section = m_symbols[i].section;
        if (section >= m_sections.size() && section < k_first_reserved_section)
            return fail(ErrorCode::corrupt, "a cubin's symbol {} is in section {} of only {}", i, section,
                        m_sections.size());
    }
    return {};
}

std::string_view File::name(const Section& section) const noexcept
{
    return name_at(contents(m_sections[m_header.names_section]), section.name);
}

std::string_view File::name(const Symbol& symbol) const noexcept
{
    return name_at(contents(m_sections[symbol_names_section()]), symbol.name);
}

ByteView File::contents(const Section& section) const noexcept
{
    if (section.type == k_null || section.type == k_nobits) return {};
    return m_bytes.subspan(static_cast<std::size_t>(section.offset), static_cast<std::size_t>(section.size));
}

std::uint32_t File::section_of(const Symbol& symbol) const noexcept
{
    return symbol.section < m_sections.size() ? symbol.section : 0;
}

std::vector<Relocation> relocations(const File& file, const Section& section)
{
    std::vector<Relocation> rows;
    if (!is_relocation(section)) return rows;
    const ByteView bytes = file.contents(section);
    const std::size_t size = relocation_size(section);
    rows.reserve(bytes.size() / size);
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
        const auto info = load<std::uint64_t>(bytes, at + 8);
        rows.push_back({load<std::uint64_t>(bytes, at), static_cast<std::uint32_t>(info >> 32U),
                        static_cast<std::uint32_t>(info)});
    }
    return rows;
}

} // namespace warmgraph::backends::cuda::elf
