#include "cut.hpp"

#include <cstring>
#include <map>

#include "call_rows.hpp"
#include "cut_plan.hpp"
#include "cut_write.hpp"

namespace warmgraph::backends::cuda {

namespace {

using elf::File;
using elf::Section;
using elf::Symbol;

// A new table with only the names that are requested.
class NameTable {
public:
    NameTable() { m_bytes.resize(1); } // offset 0 is the empty name
    std::uint32_t add(std::string_view name)
    {
        if (name.empty()) return 0;
        const auto [at, is_new] = m_offsets.emplace(name, static_cast<std::uint32_t>(m_bytes.size()));
        if (is_new) {
            append(m_bytes, as_bytes(name));
            m_bytes.push_back(std::byte{0});
        }
        return at->second;
    }
    [[nodiscard]] std::size_t size() const noexcept { return m_bytes.size(); }
    [[nodiscard]] Bytes take() { return std::move(m_bytes); }

private:
    Bytes m_bytes;
    std::map<std::string_view, std::uint32_t> m_offsets;
};

class Cutter {
public:
    Cutter(const File& file, const CutPlan& plan) : m_file(file), m_plan(plan)
    {
        m_change.removed = plan.removed_sections;
    }

    Result<Bytes> cut()
    {
        if (auto done = change_names(); !done) return std::unexpected(std::move(done.error()));
        const auto sections = m_file.sections();
        for (std::uint32_t i = 0; i < sections.size(); ++i) {
            if (m_plan.removed_sections[i]) continue;
            if (auto done = change_rows(i); !done) return std::unexpected(std::move(done.error()));
        }
        return write_elf(m_file, m_change);
    }

private:
    // Drops the names of removed symbols. Sections and symbols may share one table of names.
    Result<void> change_names()
    {
        const std::uint32_t of_symbols = m_file.symbol_names_section();
        const std::uint32_t of_sections = m_file.header().names_section;
        std::map<std::uint32_t, NameTable> tables;
        std::size_t most = 2;
        for (const std::uint32_t table : {of_symbols, of_sections}) most += m_file.sections()[table].size;
        const auto add = [&](std::uint32_t table, std::string_view name) { return tables[table].add(name); };

        std::vector<Symbol> symbols(m_file.symbols().begin(), m_file.symbols().end());
        for (std::uint32_t i = 0; i < symbols.size(); ++i) {
            const std::string_view name = m_plan.removed_symbols[i] ? std::string_view{} : m_file.name(symbols[i]);
            if (m_plan.removed_symbols[i]) symbols[i] = Symbol{};
            symbols[i].name = add(of_symbols, name);
            if (tables[of_symbols].size() > most) return names_overlap();
        }
        for (std::uint32_t i = 0; i < m_file.sections().size(); ++i) {
            const bool gone = m_plan.removed_sections[i];
            m_change.section_names.push_back(
                add(of_sections, gone ? std::string_view{} : m_file.name(m_file.sections()[i])));
            if (tables[of_sections].size() > most) return names_overlap();
        }
        for (auto& [table, names] : tables) m_change.contents[table] = names.take();
        Bytes bytes;
        append(bytes, std::as_bytes(std::span(symbols)));
        m_change.contents[m_file.symbol_section()] = std::move(bytes);
        return {};
    }
    static std::unexpected<Error> names_overlap()
    {
        return fail(ErrorCode::unsupported, "the cubin's names overlap, so unused kernels are not removed from it");
    }

    Result<void> change_rows(std::uint32_t i)
    {
        const Section& section = m_file.sections()[i];
        switch (m_plan.roles[i]) {
        case SectionRole::info: return change_info(i);
        case SectionRole::callgraph: return change_calls(i);
        case SectionRole::prototypes: return change_prototypes(i);
        case SectionRole::relocations: {
            const SectionRole of = m_plan.roles[section.info];
            if (of == SectionRole::frames || of == SectionRole::debug) return change_relocations(i);
            return {};
        }
        default: return {};
        }
    }

    Result<void> change_info(std::uint32_t i)
    {
        const auto rows = read_info(m_file.contents(m_file.sections()[i]));
        if (!rows) return std::unexpected(rows.error());
        Bytes kept;
        for (const InfoRow& row : *rows) {
            const bool names_removed = !is_about_image(row) && m_plan.removes_symbol(load<std::uint32_t>(row.payload));
            if (names_removed && !is_about_symbol(row))
                return fail(ErrorCode::unsupported,
                            "attribute {:#x} of .nv.info may belong to an unused kernel, so unused kernels are not "
                            "removed from the cubin",
                            row.attribute);
            if (!names_removed) append(kept, row.whole);
        }
        m_change.contents[i] = std::move(kept);
        return {};
    }

    Result<void> change_calls(std::uint32_t i)
    {
        const auto rows = read_calls(m_file.contents(m_file.sections()[i]));
        if (!rows) return std::unexpected(rows.error());
        Bytes kept;
        for (const CallRow& row : *rows) {
            if (row.kind != CallKind::mark && m_plan.removes_symbol(row.first)) continue;
            if (row.kind == CallKind::needs && m_plan.removes_symbol(row.second)) continue;
            append(kept, row.first);
            append(kept, row.second);
        }
        m_change.contents[i] = std::move(kept);
        return {};
    }

    // Drops rows of removed symbols. A row is a symbol and its prototype's number.
    Result<void> change_prototypes(std::uint32_t i)
    {
        constexpr std::size_t k_row = 8;
        const ByteView bytes = m_file.contents(m_file.sections()[i]);
        if (bytes.size() % k_row != 0)
            return fail(ErrorCode::unsupported, "prototypes of {} bytes, expected rows of {}", bytes.size(), k_row);
        Bytes kept;
        for (std::size_t at = 0; at < bytes.size(); at += k_row)
            if (!m_plan.removes_symbol(load<std::uint32_t>(bytes, at))) append(kept, bytes.subspan(at, k_row));
        m_change.contents[i] = std::move(kept);
        return {};
    }

    Result<void> change_relocations(std::uint32_t i)
    {
        const Section& section = m_file.sections()[i];
        const ByteView bytes = m_file.contents(section);
        const std::size_t size = elf::relocation_size(section);
        if (bytes.size() % size != 0 || (section.entry_size != 0 && section.entry_size != size))
            return fail(ErrorCode::unsupported, "relocations of {} bytes, expected rows of {}", bytes.size(), size);
        Bytes kept;
        for (std::size_t at = 0; at < bytes.size(); at += size) {
            const auto symbol = static_cast<std::uint32_t>(load<std::uint64_t>(bytes, at + 8) >> 32U);
            if (!m_plan.removes_symbol(symbol)) append(kept, bytes.subspan(at, size));
        }
        m_change.contents[i] = std::move(kept);
        return {};
    }

    const File& m_file;
    const CutPlan& m_plan;
    ElfChange m_change;
};

} // namespace

Result<Bytes> cut_cubin(ByteView image, std::span<const std::string> kernels)
{
    const auto file = File::parse(image);
    if (!file) return std::unexpected(file.error());
    const auto plan = plan_cut(*file, kernels);
    if (!plan) return std::unexpected(plan.error());
    auto bytes = Cutter(*file, *plan).cut();
    if (bytes && bytes->size() > image.size()) return Bytes(image.begin(), image.end());
    return bytes;
}

} // namespace warmgraph::backends::cuda
