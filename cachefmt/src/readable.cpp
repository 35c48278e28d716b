// The text form of `warmgraph show`: aligned columns, one section each.
#include "warmgraph/cachefmt/readable.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe.hpp"
#include "readable_table.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/fact_lists.hpp"

namespace warmgraph::cachefmt {
namespace {

void put_field(std::string& out, std::string_view name, std::string_view value)
{
    if (!value.empty()) out += fmt::format("{:<12}{}\n", name, value);
}

std::string head(const Entry& entry, const Paint& paint)
{
    const EntryHeader& header = entry.header;
    const EntryInfo& info = header.info;
    std::string out;
    put_field(out, "function", printable(header.key.function.function));
    put_field(out, "model", printable(header.key.function.model_info));
    put_field(out, "rank", printable(header.key.function.rank));
    put_field(out, "entry", to_hex(header.key.guards_digest));
    const std::string kind{to_string(header.kind)};
    put_field(out, "kind",
              fmt::format("{}, format {}", header.kind == EntryKind::graph ? kind : paint.red(kind), k_format_version));
    put_field(out, "created",
              printable(info.created) + (info.created_by.empty() ? "" : " by " + printable(info.created_by)));
    if (info.answer_ms > 0)
        put_field(out, "saves", time_text(info.answer_ms) + " a hit (the first call without the cache)");
    if (info.record_ms > 0) put_field(out, "recorded", "in " + time_text(info.record_ms));
    put_field(out, "verified", printable(info.verification));
    if (header.recording)
        put_field(out, "recording",
                  fmt::format("{} of {}", to_string(header.recording->part), to_hex(header.recording->id)));
    for (const std::string& line : info.scalar_proofs) put_field(out, "scalar", printable(line));
    if (info.library_constants > 0)
        put_field(out, "constants",
                  fmt::format("{} of libraries' images, stored unchanged",
                              plural(info.library_constants, "__constant__ variable")));
    if (info.unproven > 0)
        put_field(out, "unproven",
                  fmt::format("{} assumed to be addresses only by their value (adopted with one capture)",
                              plural(info.unproven, "parameter word")));
    if (info.unused_words > 0)
        put_field(
            out, "unused",
            fmt::format("{} that are uninitialised, stored as zeros", plural(info.unused_words, "parameter word")));
    put_field(out, "refused", printable(info.reason));
    for (const std::string& line : info.difference) out += fmt::format("{:<12}{}\n", "", printable(line));
    return out;
}

/// The columns that remain for a value beside the other cells of its row.
std::size_t room_for_values(const std::vector<Fact>& facts, std::size_t columns)
{
    constexpr std::size_t k_least = 64; // the length of a digest, which is never cut
    std::size_t name = 0, role = 0, compared = std::string_view("compared").size();
    for (const Fact& fact : facts) {
        name = std::max(name, columns_of(printable(fact.name)));
        role = std::max(role, to_string(fact.role).size());
        compared = std::max(compared, compared_text(fact).size());
    }
    constexpr std::size_t k_blanks = 8;
    const std::size_t rest = name + role + compared + k_blanks;
    return columns > rest + k_least ? columns - rest : k_least;
}

std::string guards_section(const Guards& guards, const Paint& paint, std::size_t columns)
{
    const auto facts = each_fact(guards.facts);
    std::string out = fmt::format("{} {}, {}, {}\n", paint.bold("guards:"), plural(facts.size(), "fact"),
                                  plural(guards.tensors.size(), "tensor"), plural(guards.values.size(), "value"));
    if (!facts.empty()) {
        Table table{{"fact", "value", "role", "compared"}};
        const std::size_t most = room_for_values(facts, columns);
        for (const Fact& fact : facts) {
            const auto add = fact.role == Role::advisory ? &Table::add_faint : &Table::add;
            (table.*add)({printable(fact.name), cut_to(fact_text(fact.value), most), std::string{to_string(fact.role)},
                          std::string{compared_text(fact)}});
        }
        out += table.text(paint);
    }
    if (!guards.tensors.empty()) {
        Table table{{"tensor", "must be"}};
        for (const TensorSpec& tensor : guards.tensors)
            table.add({printable(tensor.name), to_text(tensor, guards) + " on " + printable(tensor.device)});
        out += table.text(paint);
    }
    if (!guards.values.empty()) {
        Table table{{"value", "type", "must be"}};
        for (const ValueSpec& value : guards.values)
            table.add({printable(value.name), std::string{warmgraph::to_string(value.dtype)}, value_text(value)});
        out += table.text(paint);
    }
    return out;
}

std::vector<std::int64_t> contiguous(const std::vector<std::int64_t>& sizes)
{
    std::vector<std::int64_t> strides(sizes.size(), 1);
    for (std::size_t i = sizes.size(); i-- > 1;)
        if (__builtin_mul_overflow(strides[i], sizes[i], &strides[i - 1])) return {};
    return strides;
}

} // namespace

std::string to_text(const TensorSpec& tensor, const Guards& guards)
{
    std::string text = fmt::format("{}[{}]", warmgraph::to_string(tensor.dtype), fmt::join(tensor.sizes, ","));
    if (tensor.strides != contiguous(tensor.sizes)) text += fmt::format(" strides {}", fmt::join(tensor.strides, ","));
    text += fmt::format(" align {}", tensor.alignment);
    if (tensor.alias_group < guards.tensors.size() && guards.tensors[tensor.alias_group].name != tensor.name)
        text += " aliases " + printable(guards.tensors[tensor.alias_group].name);
    if (tensor.distance && *tensor.distance != 0) text += fmt::format(" at {} bytes", *tensor.distance);
    return text;
}

std::optional<Section> section_of(std::string_view name) noexcept
{
    static constexpr std::array<std::pair<std::string_view, Section>, 5> k_names{{{"header", Section::header},
                                                                                  {"guards", Section::guards},
                                                                                  {"bindings", Section::bindings},
                                                                                  {"images", Section::images},
                                                                                  {"nodes", Section::nodes}}};
    for (const auto& [known, section] : k_names)
        if (known == name) return section;
    return std::nullopt;
}

std::string to_readable(const Entry& entry, const Sections& only, Inks inks, std::size_t columns)
{
    const Paint paint{inks};
    const EntryKey& key = entry.header.key;
    const auto is_wanted = [&](Section section) { return only.empty() || only.contains(section); };
    std::string out = is_wanted(Section::header)
                          ? head(entry, paint)
                          : fmt::format("{}\n", paint.bold(fmt::format("{} {}", printable(key.function.function),
                                                                       short_hex(key.guards_digest))));
    if (is_wanted(Section::guards)) out += "\n" + guards_section(entry.header.guards, paint, columns);
    if (entry.header.kind == EntryKind::tombstone) return out;
    if (is_wanted(Section::bindings)) out += "\n" + bindings_section(entry.graph, paint);
    if (is_wanted(Section::images)) out += "\n" + images_section(entry.graph, paint);
    if (is_wanted(Section::nodes)) out += "\n" + nodes_section(entry.graph, paint);
    return out;
}

} // namespace warmgraph::cachefmt
