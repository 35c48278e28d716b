#include "image.hpp"

#include <cstring>
#include <map>

#include <elf.h>

namespace fake_cuda {
namespace {

constexpr Elf64_Half k_cuda_machine = 190; // EM_CUDA
constexpr std::string_view k_text = ".text.", k_variables = ".nv.global.init";

/// Writes the sections of an image in the order of their headers.
class Writer {
public:
    Writer() { m_sections.emplace_back(); }

    Elf64_Section add(std::string name, Elf64_Word type, Elf64_Xword flags, std::span<const std::byte> bytes)
    {
        Section section{.header = {}, .name = std::move(name), .bytes = {bytes.begin(), bytes.end()}};
        section.header.sh_type = type;
        section.header.sh_flags = flags;
        section.header.sh_addralign = 8;
        m_sections.push_back(std::move(section));
        return static_cast<Elf64_Section>(m_sections.size() - 1);
    }
    Elf64_Shdr& header(Elf64_Section index) { return m_sections[index].header; }

    std::vector<std::byte> finish(int architecture)
    {
        std::string names(1, '\0');
        add(".shstrtab", SHT_STRTAB, 0, {});
        for (Section& section : m_sections) {
            section.header.sh_name = section.name.empty() ? 0 : static_cast<Elf64_Word>(names.size());
            if (!section.name.empty()) names += section.name + '\0';
        }
        const auto as_bytes = std::as_bytes(std::span(names));
        m_sections.back().bytes.assign(as_bytes.begin(), as_bytes.end());
        std::vector<std::byte> file(sizeof(Elf64_Ehdr));
        for (Section& section : m_sections) {
            file.resize((file.size() + 7) / 8 * 8);
            section.header.sh_offset = section.name.empty() ? 0 : file.size();
            section.header.sh_size = section.bytes.size();
            file.insert(file.end(), section.bytes.begin(), section.bytes.end());
        }
        file.resize((file.size() + 7) / 8 * 8);
        const Elf64_Ehdr elf = file_header(architecture, file.size());
        std::memcpy(file.data(), &elf, sizeof elf);
        for (const Section& section : m_sections) {
            const auto header_bytes = std::as_bytes(std::span(&section.header, 1));
            file.insert(file.end(), header_bytes.begin(), header_bytes.end());
        }
        return file;
    }

private:
    struct Section {
        Elf64_Shdr header{};
        std::string name;
        std::vector<std::byte> bytes;
    };
    [[nodiscard]] Elf64_Ehdr file_header(int architecture, std::size_t headers_at) const
    {
        Elf64_Ehdr elf{};
        std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
        elf.e_ident[EI_CLASS] = ELFCLASS64;
        elf.e_ident[EI_DATA] = ELFDATA2LSB;
        elf.e_ident[EI_VERSION] = EV_CURRENT;
        elf.e_ident[EI_OSABI] = 51; // CUDA's
        elf.e_ident[EI_ABIVERSION] = 7;
        elf.e_type = ET_EXEC;
        elf.e_machine = k_cuda_machine;
        elf.e_version = EV_CURRENT;
        // As ptxas of CUDA 12 writes the flags: the architecture is in the low byte, the virtual architecture in the
        // third byte.
        elf.e_flags = static_cast<Elf64_Word>(architecture | 0x500 | architecture << 16);
        elf.e_ehsize = sizeof(Elf64_Ehdr);
        elf.e_shentsize = sizeof(Elf64_Shdr);
        elf.e_shnum = static_cast<Elf64_Half>(m_sections.size());
        elf.e_shstrndx = static_cast<Elf64_Half>(m_sections.size() - 1);
        elf.e_shoff = headers_at;
        return elf;
    }
    std::vector<Section> m_sections;
};

/// The table of symbols, and the table of their names.
struct Symbols {
    std::string names = std::string(1, '\0');
    std::vector<Elf64_Sym> symbols = std::vector<Elf64_Sym>(1);

    void add(const std::string& name, unsigned char type, Elf64_Section section, std::size_t value, std::size_t size)
    {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<Elf64_Word>(names.size());
        symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type));
        if (type == STT_FUNC) symbol.st_other = 0x10; // STO_CUDA_ENTRY
        symbol.st_shndx = section;
        symbol.st_value = value;
        symbol.st_size = size;
        symbols.push_back(symbol);
        names += name + '\0';
    }
};

/// Reads the sections of a file whose headers are already checked.
class Reader {
public:
    explicit Reader(const void* data) : m_data(static_cast<const std::byte*>(data))
    {
        std::memcpy(&m_elf, data, sizeof m_elf);
    }

    [[nodiscard]] bool is_image() const
    {
        return std::memcmp(m_elf.e_ident, ELFMAG, SELFMAG) == 0 && m_elf.e_machine == k_cuda_machine &&
               m_elf.e_shentsize == sizeof(Elf64_Shdr) && m_elf.e_shstrndx < m_elf.e_shnum;
    }
    [[nodiscard]] int architecture() const { return static_cast<int>(m_elf.e_flags & 0xff); }
    [[nodiscard]] Elf64_Half count() const { return m_elf.e_shnum; }
    [[nodiscard]] Elf64_Shdr section(Elf64_Half index) const
    {
        Elf64_Shdr header;
        std::memcpy(&header, m_data + m_elf.e_shoff + index * sizeof header, sizeof header);
        return header;
    }
    [[nodiscard]] std::string_view name(const Elf64_Shdr& header) const
    {
        return text(section(m_elf.e_shstrndx), header.sh_name);
    }
    [[nodiscard]] std::string_view text(const Elf64_Shdr& strings, Elf64_Word offset) const
    {
        return reinterpret_cast<const char*>(m_data + strings.sh_offset + offset);
    }
    [[nodiscard]] std::span<const std::byte> bytes(const Elf64_Shdr& header) const
    {
        return {m_data + header.sh_offset, header.sh_size};
    }
    [[nodiscard]] std::size_t size() const
    {
        std::size_t end = m_elf.e_shoff + m_elf.e_shnum * sizeof(Elf64_Shdr);
        for (Elf64_Half i = 0; i < count(); ++i) {
            const Elf64_Shdr header = section(i);
            if (header.sh_type != SHT_NULL && header.sh_type != SHT_NOBITS)
                end = std::max<std::size_t>(end, header.sh_offset + header.sh_size);
        }
        return end;
    }

private:
    const std::byte* m_data;
    Elf64_Ehdr m_elf{};
};

void read_variables(const Reader& file, const Elf64_Shdr& table, Image& image)
{
    const auto bytes = file.bytes(table);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.size(); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, bytes.data() + at, sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= file.count()) continue;
        const auto contents = file.bytes(file.section(symbol.st_shndx)).subspan(symbol.st_value, symbol.st_size);
        const auto strings = file.section(static_cast<Elf64_Half>(table.sh_link));
        image.variables.push_back(
            {std::string(file.text(strings, symbol.st_name)), {contents.begin(), contents.end()}});
    }
}

} // namespace

std::vector<std::byte> write_image(const Image& image)
{
    Writer file;
    Symbols symbols;
    for (const auto& [name, arguments] : image.kernels) {
        const std::string code = to_text(arguments);
        const auto section = file.add(std::string(k_text) + name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
                                      std::as_bytes(std::span(code)));
        symbols.add(name, STT_FUNC, section, 0, code.size());
    }
    if (!image.variables.empty()) {
        std::vector<std::byte> contents;
        std::vector<std::size_t> places;
        for (const Variable& variable : image.variables) {
            places.push_back(contents.size());
            contents.insert(contents.end(), variable.initial.begin(), variable.initial.end());
        }
        const auto section = file.add(std::string(k_variables), SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, contents);
        for (std::size_t i = 0; i < places.size(); ++i)
            symbols.add(image.variables[i].name, STT_OBJECT, section, places[i], image.variables[i].initial.size());
    }
    const auto strings = file.add(".strtab", SHT_STRTAB, 0, std::as_bytes(std::span(symbols.names)));
    const auto table = file.add(".symtab", SHT_SYMTAB, 0, std::as_bytes(std::span(symbols.symbols)));
    file.header(table).sh_link = strings;
    file.header(table).sh_info = 1;
    file.header(table).sh_entsize = sizeof(Elf64_Sym);
    return file.finish(image.architecture);
}

std::optional<Image> read_image(const void* data)
{
    const Reader file(data);
    if (!file.is_image()) return std::nullopt;
    Image image;
    image.architecture = file.architecture();
    for (Elf64_Half i = 0; i < file.count(); ++i) {
        const Elf64_Shdr header = file.section(i);
        if (header.sh_type == SHT_SYMTAB) read_variables(file, header, image);
        const std::string_view name = file.name(header);
        if (header.sh_type != SHT_PROGBITS || !name.starts_with(k_text)) continue;
        const auto code = file.bytes(header);
        const auto arguments = arguments_of({reinterpret_cast<const char*>(code.data()), code.size()});
        if (!arguments) return std::nullopt;
        image.kernels.push_back({std::string(name.substr(k_text.size())), *arguments});
    }
    return image;
}

std::size_t size_of_image(const void* data) { return Reader(data).size(); }

} // namespace fake_cuda
