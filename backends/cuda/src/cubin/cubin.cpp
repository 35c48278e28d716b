#include "cubin.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "call_rows.hpp"
#include "state.hpp"
#include "symbols.hpp"

namespace warmgraph::backends::cuda {

namespace {

using elf::File;
using elf::Section;
using elf::Symbol;

std::uint32_t architecture(const elf::FileHeader& header) noexcept
{
    // From ABI version 8 (CUDA 13) on, the lowest byte has another meaning.
    const std::uint32_t shift = header.ident[8] >= 8 ? 8 : 0;
    return (header.flags >> shift) & 0xffU;
}

std::optional<VariableKind> kind_of(std::string_view section, const Symbol& symbol) noexcept
{
    if (section.starts_with(".nv.constant3")) return VariableKind::constant;
    if (!elf::is_global_memory(section)) return std::nullopt;
    return (symbol.other & elf::k_managed) != 0 ? VariableKind::managed : VariableKind::device;
}

// Offsets that relocations fill in, sorted, for each section.
std::map<std::uint32_t, std::vector<std::uint64_t>> relocated_places(const File& file)
{
    std::map<std::uint32_t, std::vector<std::uint64_t>> places;
    for (const Section& section : file.sections()) {
        if (!elf::is_relocation(section) || section.info >= file.sections().size()) continue;
        if (file.sections()[section.info].type == elf::k_nobits) continue;
        if (!kind_of(file.name(file.sections()[section.info]), Symbol{})) continue;
        for (const elf::Relocation& row : elf::relocations(file, section)) places[section.info].push_back(row.offset);
    }
    for (auto& [section, offsets] : places) {
        std::ranges::sort(offsets);
        offsets.erase(std::ranges::unique(offsets).begin(), offsets.end());
    }
    return places;
}

// Limits the memory for initial values. Variables do not overlap, so all of them fit into the file's size and the
// allowed zeros; only a hostile file needs more.
class Budget {
public:
    explicit Budget(std::uint64_t file_size) noexcept : m_bytes(file_size) {}

    [[nodiscard]] Result<Bytes> initial(const File& file, const Section& section, const Symbol& symbol)
    {
        if (symbol.value > section.size || symbol.size > section.size - symbol.value)
            return fail(ErrorCode::corrupt, "variable '{}' at {} of {} bytes is not within its section of {}",
                        file.name(symbol), symbol.value, symbol.size, section.size);
        const auto size = static_cast<std::size_t>(symbol.size);
        if (section.type == elf::k_nobits) {
            if (size > m_zeros) return Bytes{};
            m_zeros -= size;
            return Bytes(size);
        }
        if (size > m_bytes)
            return fail(ErrorCode::corrupt, "variable '{}': the cubin's variables are larger than the cubin",
                        file.name(symbol));
        m_bytes -= size;
        const ByteView view = file.contents(section).subspan(static_cast<std::size_t>(symbol.value), size);
        return Bytes(view.begin(), view.end());
    }

private:
    std::uint64_t m_bytes;
    std::uint64_t m_zeros = CubinVariable::k_most_zeros;
};

} // namespace

Result<std::vector<std::string>> kernels_of(ByteView image)
{
    const auto file = File::parse(image);
    if (!file) return std::unexpected(file.error());
    std::vector<std::string> kernels;
    for (const Symbol& symbol : file->symbols())
        if (elf::is_kernel(*file, symbol)) kernels.emplace_back(file->name(symbol));
    return kernels;
}

CodeTraits code_traits(ByteView image)
{
    const auto file = File::parse(image);
    if (!file) return {};
    CodeTraits traits{.calls_by_address = false, .keeps_state = keeps_state(*file)};
    for (const Section& section : file->sections()) {
        if (file->name(section) != ".nv.callgraph") continue;
        const auto rows = read_calls(file->contents(section));
        traits.calls_by_address =
            !rows || std::ranges::find(*rows, CallKind::by_address, &CallRow::kind) != rows->end();
    }
    return traits;
}

Result<Cubin> Cubin::parse(ByteView image)
{
    const auto file = File::parse(image);
    if (!file) return std::unexpected(file.error());
    Cubin cubin;
    cubin.m_sm = architecture(file->header());
    const auto places = relocated_places(*file);
    Budget budget(image.size());
    for (const Symbol& symbol : file->symbols()) {
        if (elf::is_kernel(*file, symbol)) cubin.m_kernels.emplace_back(file->name(symbol));
        const std::uint32_t index = file->section_of(symbol);
        if (symbol.type() != elf::k_object || index == 0) continue;
        const Section& section = file->sections()[index];
        const auto kind = kind_of(file->name(section), symbol);
        if (!kind || symbol.size == 0 || file->name(symbol).empty()) continue;
        auto initial = budget.initial(*file, section, symbol);
        if (!initial) return std::unexpected(std::move(initial.error()));
        CubinVariable variable{.name = std::string(file->name(symbol)),
                               .size = symbol.size,
                               .initial = std::move(*initial),
                               .kind = *kind,
                               .binding = symbol.binding() == 0 ? VariableBinding::local : VariableBinding::visible,
                               .relocated = {}};
        if (const auto found = places.find(index); found != places.end()) {
            const auto& offsets = found->second;
            for (auto at = std::ranges::lower_bound(offsets, symbol.value);
                 at != offsets.end() && *at - symbol.value < symbol.size; ++at)
                variable.relocated.push_back(*at - symbol.value);
        }
        cubin.m_variables.push_back(std::move(variable));
    }
    return cubin;
}

} // namespace warmgraph::backends::cuda
