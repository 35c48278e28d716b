#include "state.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "symbols.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::backends::cuda {

namespace {

using elf::File;
using elf::Section;
using elf::Symbol;

/// True for names that compilers give to string literals and function names, which have no name in the source. NVIDIA's
/// compilers: "$str", "$str$2", "__unnamed_1". LLVM (libdevice's "__CUDA_FTZ"): "_$_str", "_$_str_$_1", because its PTX
/// backend replaces '.' by "_$_" (NVPTXAssignValidGlobalNames). A program's variables always have a name (device code
/// has no anonymous unions).
bool is_compilers_own(std::string_view name) noexcept
{
    for (const auto& [prefix, rest] : {std::pair<std::string_view, std::string_view>{"$str", "$0123456789"},
                                       {"__unnamed_", "$0123456789"},
                                       {"_$_str", "_$0123456789"}})
        if (name.starts_with(prefix)) return name.find_first_not_of(rest, prefix.size()) == std::string_view::npos;
    return false;
}

/// Triton gives each assertion three texts: "assertMessage_0", "assertFile_0" and "assertFunc_0" (its
/// TargetInfo::assertFail for NVIDIA). A program may use one such name, but hardly all three with the same number.
class Assertions {
public:
    /// Notes the name; returns true if it is a name of such a text.
    bool take(std::string_view name)
    {
        for (std::size_t i = 0; i < k_names.size(); ++i) {
            if (!name.starts_with(k_names[i])) continue;
            const std::string_view number = name.substr(k_names[i].size());
            if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) return false;
            m_texts[number] |= 1U << i;
            return true;
        }
        return false;
    }
    /// True if each assertion's number has all three texts.
    [[nodiscard]] bool are_whole() const
    {
        return std::ranges::all_of(m_texts, [](const auto& one) { return one.second == (1U << k_names.size()) - 1; });
    }

private:
    static constexpr std::array<std::string_view, 3> k_names{"assertMessage_", "assertFile_", "assertFunc_"};
    std::map<std::string_view, unsigned> m_texts; ///< the texts that were found, by the assertion's number
};

/// True if the bytes are text that ends with a zero. A number nearly always contains other bytes.
bool is_text(ByteView bytes) noexcept
{
    if (bytes.empty() || bytes.back() != std::byte{0}) return false;
    return std::ranges::all_of(bytes.first(bytes.size() - 1), [](std::byte one) {
        const auto letter = std::to_integer<unsigned char>(one);
        return letter >= 0x20 || (letter >= '\t' && letter <= '\r') || letter == 0x1b;
    });
}

/// Reads and removes a decimal number from the start of `text`; nullopt for a leading zero or more than 32 bits.
std::optional<std::size_t> take_number(std::string_view& text)
{
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || text.front() == '0') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

/// Removes the prefix of separate compilation (nvcc -rdc) from a local name: "__nv_static_<n>_<n letters>_".
std::string_view own_name(std::string_view symbol)
{
    constexpr std::string_view k_prefix = "__nv_static_";
    if (!symbol.starts_with(k_prefix)) return symbol;
    std::string_view rest = symbol.substr(k_prefix.size());
    const auto length = take_number(rest);
    if (!length || rest.size() < *length + 2 || rest.front() != '_' || rest[*length + 1] != '_') return symbol;
    return rest.substr(*length + 2);
}

/// Returns "a", "b" for _ZN1a1bE, a plain nested name. Empty for other names (templates, functions).
std::vector<std::string_view> parts_of(std::string_view mangled)
{
    if (!mangled.starts_with("_ZN") || !mangled.ends_with('E')) return {};
    std::string_view rest = mangled.substr(3, mangled.size() - 4);
    std::vector<std::string_view> parts;
    while (!rest.empty()) {
        const auto length = take_number(rest);
        if (!length || *length > rest.size()) return {};
        parts.push_back(rest.substr(0, *length));
        rest.remove_prefix(*length);
    }
    return parts;
}

/// True for inline namespaces, e.g. "__4" (in cuda::std), "THRUST_300001_SM_900_NS", "CUB_200200_900_NS", and for the
/// unnamed namespace.
bool is_inline_namespace(std::string_view part)
{
    if (part.starts_with("_GLOBAL__N__")) return true;
    if ((part.starts_with("THRUST_") || part.starts_with("CUB_")) && part.ends_with("_NS")) return true;
    return part.size() > 2 && part.starts_with("__") &&
           part.find_first_not_of("0123456789", 2) == std::string_view::npos;
}

/// Returns e.g. "cuda::std::in_place": leaves out inline namespaces, and the namespace that nvcc adds for internal
/// linkage.
std::string qualified_name(const std::vector<std::string_view>& parts)
{
    std::string name;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool is_last = i + 1 == parts.size();
        if ((i == 0 && parts[i].starts_with("_INTERNAL_")) || (!is_last && is_inline_namespace(parts[i]))) continue;
        if (!name.empty()) name += "::";
        name += parts[i];
    }
    return name;
}

struct Table {
    std::string_view name;
    std::uint64_t size; ///< bytes
    std::string_view sha256;
};
/// The known tables. They are the same in 66 cubins of nvcc 13.0 (64 of them in PyTorch 2.11). cuRAND's tables are not
/// const in its headers, so contents are compared exactly: no program's variable has both this name and these contents.
constexpr auto k_tables = std::to_array<Table>({
    {"__cudart_i2opi_d", 144, "7ede62875c004cc8c2847b487cb377f75c153593f45bab10b272128e31690cde"},
    {"__cudart_i2opi_f", 24, "af58a7804afd16e4e7a715bd29412e82374ac0eb2196ae5f00fbd5835af8006d"},
    {"__cudart_sin_cos_coeffs", 128, "bf6a9587812432cf5649f28013165faa5a19d2ad0f66fd69cbf13096c2ea4263"},
    {"mrg32k3aM1", 2304, "2bcb6a629835d9fd1cda62aedd926514a367933f23388e3c69cab7c76c74ea68"},
    {"mrg32k3aM1Seq", 2304, "8b5206b727ab32917d14ba79d83617f8ef9d694f0de48c7d63eca5f1ccde50f2"},
    {"mrg32k3aM1SubSeq", 2016, "a0a160a61c1a0d6ba95541adcd84570891939f331882a49d728416dff75f80df"},
    {"mrg32k3aM2", 2304, "0a6fff5f6b61a5b629ce56ecad50585330e2f041a9642a3eff87f058584dadce"},
    {"mrg32k3aM2Seq", 2304, "9c920c5dcce57873cb14e762697f2298f65bf46c96b0072a925f31a5b2eb6584"},
    {"mrg32k3aM2SubSeq", 2016, "5f499036b126475c304e7b3f2396a433dad7eca5567b2bbb9aeb4a55ed410aa3"},
    {"precalc_xorwow_matrix", 102400, "492702195d41afb526f6ce58815ab81fa23b7ea994c2cf9f58f8f33e0226fb37"},
    {"precalc_xorwow_offset_matrix", 102400, "574cb2391b89ea0041af1d2c2e67408933b7a47013eb9c49f6cf181e0eed6dde"},
});

bool is_zero(ByteView bytes)
{
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

/// True if the variable is not state. An empty `initial` means zeros, because the section has no bytes in the file.
bool is_no_state(std::string_view name, const Symbol& symbol, ByteView initial, Assertions& assertions)
{
    if ((symbol.other & elf::k_managed) != 0) return false; // the host may write the variable at any time
    if (is_compilers_own(name) || assertions.take(name)) return symbol.binding() == 0 && is_text(initial);
    return (is_empty_object(name, symbol.size) && is_zero(initial)) || is_known_table(name, initial);
}

/// True if the section has only variables that are not state, and padding.
bool holds_no_state(const File& file, std::uint32_t index)
{
    constexpr std::uint64_t k_most_padding = 15;
    const Section& section = file.sections()[index];
    const ByteView contents = file.contents(section);
    if (section.type != elf::k_nobits && contents.size() != section.size) return false;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places; // (start, end) of each variable
    Assertions assertions;
    for (const Symbol& symbol : file.symbols()) {
        if (symbol.type() != elf::k_object || symbol.size == 0 || file.section_of(symbol) != index) continue;
        if (symbol.value > section.size || symbol.size > section.size - symbol.value) return false;
        const ByteView initial = contents.empty() ? contents
                                                  : contents.subspan(static_cast<std::size_t>(symbol.value),
                                                                     static_cast<std::size_t>(symbol.size));
        if (!is_no_state(file.name(symbol), symbol, initial, assertions)) return false;
        places.emplace_back(symbol.value, symbol.value + symbol.size);
    }
    if (!assertions.are_whole()) return false;
    std::ranges::sort(places);
    std::uint64_t covered = 0;
    for (const auto& [start, end] : places) {
        if (start > covered + k_most_padding) return false;
        covered = std::max(covered, end);
    }
    return section.size <= covered + k_most_padding && !places.empty();
}

} // namespace

bool is_empty_object(std::string_view symbol, std::uint64_t size)
{
    if (size != 1) return false; // the C++ size of a class without members
    // Function objects, tags and execution policies from the headers of CUDA 13.0 and CUTLASS 4.
    constexpr auto k_objects = std::to_array<std::string_view>(
        {"cuda::std::allocator_arg", "cuda::std::default_sentinel", "cuda::std::ignore", "cuda::std::in_place",
         "cuda::std::nullopt", "cuda::std::piecewise_construct", "cuda::std::unexpect",
         "cuda::std::unreachable_sentinel", "cute::_", "cute::product", "thrust::cuda_cub::par",
         "thrust::cuda_cub::par_nosync", "thrust::device", "thrust::host", "thrust::seq", "thrust::system::cpp::par",
         "thrust::system::detail::sequential::seq", "thrust::system::omp::par", "thrust::system::tbb::par"});
    // Namespaces with only such objects. "__cpo" is internal to the implementation.
    constexpr auto k_namespaces = std::to_array<std::string_view>(
        {"cuda::std::__cpo::", "cuda::std::ranges::__cpo::", "thrust::placeholders::_"});
    const auto parts = parts_of(own_name(symbol));
    if (parts.empty()) return false;
    const std::string name = qualified_name(parts);
    return std::ranges::find(k_objects, name) != k_objects.end() ||
           std::ranges::any_of(k_namespaces, [&](std::string_view space) {
               return name.starts_with(space) && name.find("::", space.size()) == std::string::npos;
           });
}

bool is_known_table(std::string_view symbol, ByteView initial)
{
    const auto table = std::ranges::find(k_tables, own_name(symbol), &Table::name);
    return table != k_tables.end() && table->size == initial.size() && to_hex(sha256(initial)) == table->sha256;
}

bool keeps_state(const File& file)
{
    for (std::uint32_t i = 0; i < file.sections().size(); ++i) {
        const Section& section = file.sections()[i];
        if (elf::is_global_memory(file.name(section)) && section.size != 0 && !holds_no_state(file, i)) return true;
    }
    return false;
}

} // namespace warmgraph::backends::cuda
