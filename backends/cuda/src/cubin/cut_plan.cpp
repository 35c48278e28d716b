#include "cut_plan.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "call_rows.hpp"
#include "symbols.hpp"

namespace warmgraph::backends::cuda {

namespace {

using elf::File;
using elf::Section;
using elf::Symbol;

// E.g. ".nv.constant0", ".nv.constant3".
bool is_constant_bank(std::string_view name) noexcept
{
    constexpr std::string_view k_prefix = ".nv.constant";
    if (!name.starts_with(k_prefix) || name.size() == k_prefix.size()) return false;
    return std::ranges::all_of(name.substr(k_prefix.size()), [](char c) { return c >= '0' && c <= '9'; });
}

// E.g. ".nv.constant2.K", but not ".nv.constant.user" (Mercury, sm_100).
bool is_bank_of_function(std::string_view name) noexcept
{
    constexpr std::size_t k_prefix = std::string_view(".nv.constant").size();
    const auto dot = name.find('.', k_prefix);
    return dot != std::string_view::npos && is_constant_bank(name.substr(0, dot));
}

std::optional<SectionRole> role_by_name(std::string_view name) noexcept
{
    using enum SectionRole;
    struct NamedRole {
        std::string_view name;
        SectionRole role;
    };
    static constexpr std::array k_known = {
        NamedRole{".nv.info", info},
        NamedRole{".nv.callgraph", callgraph},
        NamedRole{".nv.prototype", prototypes},
        NamedRole{".nv.compat", kept},
        NamedRole{".nv.rel.action", kept},
        NamedRole{".nv.global", kept},
        NamedRole{".nv.global.init", kept},
        NamedRole{".nv.shared.reserved.0", kept},
        NamedRole{".nv_debug.shared", kept},
        NamedRole{".debug_frame", frames},
    };
    for (const NamedRole& known : k_known)
        if (name == known.name) return known.role;
    if (elf::is_code(name)) return code;
    for (const std::string_view prefix : {".nv.info.", ".nv.shared.", ".nv.local."})
        if (name.starts_with(prefix)) return of_code;
    if (is_constant_bank(name)) return kept;
    if (is_bank_of_function(name)) return of_code;
    if (name.starts_with(".debug_") || name.starts_with(".nv_debug_")) return debug;
    if (name.starts_with(".note")) return kept;
    return std::nullopt;
}

std::optional<SectionRole> role_of(const File& file, const Section& section) noexcept
{
    switch (section.type) {
    case elf::k_null: return SectionRole::none;
    case elf::k_symtab:
    case elf::k_strtab: return SectionRole::table;
    case elf::k_rel:
    case elf::k_rela: return SectionRole::relocations;
    default: return role_by_name(file.name(section));
    }
}

class Planner {
public:
    explicit Planner(const File& file) : m_file(file) {}

    Result<CutPlan> make(std::span<const std::string> kernels)
    {
        if (auto done = find_roles(); !done) return std::unexpected(std::move(done.error()));
        if (auto done = find_owners(); !done) return std::unexpected(std::move(done.error()));
        if (auto done = collect_uses(); !done) return std::unexpected(std::move(done.error()));
        if (auto done = reach_from(kernels); !done) return std::unexpected(std::move(done.error()));
        remove();
        return std::move(m_plan);
    }

private:
    Result<void> find_roles()
    {
        for (const Section& section : m_file.sections()) {
            const auto role = role_of(m_file, section);
            if (!role)
                return fail(ErrorCode::unsupported,
                            "section '{}' has the unknown type {:#x}, so unused kernels are not removed from the cubin",
                            m_file.name(section), section.type);
            m_plan.roles.push_back(*role);
        }
        return {};
    }

    Result<void> find_owners()
    {
        const auto sections = m_file.sections();
        m_plan.owner.assign(sections.size(), 0);
        for (std::uint32_t i = 0; i < sections.size(); ++i) {
            if (m_plan.roles[i] == SectionRole::code) m_plan.owner[i] = i;
            if (m_plan.roles[i] != SectionRole::of_code) continue;
            const std::uint32_t info = sections[i].info;
            if (info >= sections.size() || m_plan.roles[info] != SectionRole::code)
                return fail(ErrorCode::unsupported,
                            "section '{}' belongs to no function, so unused kernels are not removed from the cubin",
                            m_file.name(sections[i]));
            m_plan.owner[i] = info;
        }
        for (std::uint32_t i = 0; i < sections.size(); ++i) {
            if (m_plan.roles[i] != SectionRole::relocations) continue;
            if (sections[i].info == 0 || sections[i].info >= sections.size() ||
                sections[i].link != m_file.symbol_section())
                return fail(ErrorCode::unsupported,
                            "relocations '{}' belong to no section, so unused kernels are not removed from the cubin",
                            m_file.name(sections[i]));
            m_plan.owner[i] = m_plan.owner[sections[i].info];
        }
        return {};
    }

    // The code section that contains or owns a symbol; 0 if there is none.
    [[nodiscard]] std::uint32_t code_of(std::uint32_t symbol) const noexcept
    {
        if (symbol >= m_file.symbols().size()) return 0;
        return m_plan.owner[m_file.section_of(m_file.symbols()[symbol])];
    }

    void uses(std::uint32_t from, std::uint32_t symbol)
    {
        const std::uint32_t to = code_of(symbol);
        if (to == 0) return;
        if (from == 0)
            m_roots.push_back(to);
        else
            m_uses[from].push_back(to);
    }

    // A kept section needs all that it names: in relocations, as callees, or as externals of its .nv.info.
    Result<void> collect_uses()
    {
        const auto sections = m_file.sections();
        m_uses.resize(sections.size());
        for (std::uint32_t i = 0; i < sections.size(); ++i) {
            const SectionRole role = m_plan.roles[i];
            if (role == SectionRole::relocations) {
                const SectionRole of = m_plan.roles[sections[i].info];
                if (of == SectionRole::frames || of == SectionRole::debug) continue;
                for (const elf::Relocation& row : elf::relocations(m_file, sections[i]))
                    uses(m_plan.owner[i], row.symbol);
            } else if (role == SectionRole::callgraph) {
                const auto calls = read_calls(m_file.contents(sections[i]));
                if (!calls) return std::unexpected(calls.error());
                for (const CallRow& row : *calls)
                    if (row.kind == CallKind::needs && code_of(row.first) != 0) uses(code_of(row.first), row.second);
            } else if (role == SectionRole::of_code && m_file.name(sections[i]).starts_with(".nv.info.")) {
                const auto named = external_symbols(m_file.contents(sections[i]));
                if (!named) return std::unexpected(named.error());
                for (const std::uint32_t symbol : *named) uses(m_plan.owner[i], symbol);
            }
        }
        return {};
    }

    Result<void> reach_from(std::span<const std::string> kernels)
    {
        std::vector<std::uint32_t> to_visit = m_roots;
        std::vector<bool> found(kernels.size(), false);
        for (const Symbol& symbol : m_file.symbols()) {
            if (!elf::is_kernel(m_file, symbol)) continue;
            const auto at = std::ranges::find(kernels, m_file.name(symbol));
            if (at == kernels.end()) continue;
            found[static_cast<std::size_t>(at - kernels.begin())] = true;
            to_visit.push_back(symbol.section);
        }
        for (std::size_t i = 0; i < kernels.size(); ++i)
            if (!found[i] && std::ranges::find(kernels, kernels[i]) == kernels.begin() + static_cast<std::ptrdiff_t>(i))
                return fail(ErrorCode::unsupported,
                            "kernel '{}' is not in the cubin, so unused kernels are not removed from it", kernels[i]);
        m_reached.assign(m_file.sections().size(), false);
        while (!to_visit.empty()) {
            const std::uint32_t code = to_visit.back();
            to_visit.pop_back();
            if (m_reached[code]) continue;
            m_reached[code] = true;
            to_visit.insert(to_visit.end(), m_uses[code].begin(), m_uses[code].end());
        }
        return {};
    }

    void remove()
    {
        const auto sections = m_file.sections();
        // A cubin for the debugger (-G) stays debuggable; from others, line tables and PTX text are dropped.
        const bool for_debugger = std::ranges::any_of(
            sections, [&](const Section& section) { return m_file.name(section) == ".debug_info"; });
        const auto goes = [&](std::uint32_t i) {
            if (m_plan.roles[i] == SectionRole::debug) return !for_debugger;
            return m_plan.owner[i] != 0 && !m_reached[m_plan.owner[i]];
        };
        m_plan.removed_sections.assign(sections.size(), false);
        for (std::uint32_t i = 0; i < sections.size(); ++i)
            m_plan.removed_sections[i] = goes(m_plan.roles[i] == SectionRole::relocations ? sections[i].info : i);
        for (const Symbol& symbol : m_file.symbols())
            m_plan.removed_symbols.push_back(m_plan.removed_sections[m_file.section_of(symbol)]);
    }

    const File& m_file;
    CutPlan m_plan;
    std::vector<std::vector<std::uint32_t>> m_uses; // the code sections that each code section names
    std::vector<std::uint32_t> m_roots;             // code sections that data sections name
    std::vector<bool> m_reached;
};

} // namespace

Result<CutPlan> plan_cut(const File& file, std::span<const std::string> kernels) { return Planner(file).make(kernels); }

} // namespace warmgraph::backends::cuda
