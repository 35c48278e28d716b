// Nodes that signal external semaphores, and nodes that wait for them.
#include <algorithm>

#include <fmt/ranges.h>

#include "check_count.hpp"
#include "cuda_names.hpp"
#include "describe.hpp"
#include "digest_put.hpp"
#include "flat_parse.hpp"
#include "heap_size.hpp"
#include "nodes/node_format_of.hpp"
#include "validate_slot.hpp"

namespace warmgraph::cachefmt {
namespace {

/// The value with zeros under its slot, because every replay overwrites those bytes.
std::uint64_t canonical_value(const SemaphoreUse& use) noexcept
{
    if (!use.slot) return use.value;
    return use.slot->width == 4 ? use.value & ~0xFFFF'FFFFULL : 0;
}

/// Returns "signal" or "wait"; "unknown" if out of range.
std::string_view action_text(SemaphoreAction action) noexcept
{
    switch (action) {
    case SemaphoreAction::signal: return "signal";
    case SemaphoreAction::wait: return "wait";
    }
    return "unknown";
}

/// The semaphore's name; "semaphore 7" if the index is out of range.
std::string semaphore_text(std::uint32_t semaphore, const Graph& graph)
{
    return semaphore < graph.semaphores.size() ? printable(graph.semaphores[semaphore])
                                               : fmt::format("semaphore {}", semaphore);
}

/// Returns e.g. "frame = 7" for a signal, "frame >= step + 1" for a wait.
std::string use_text(const SemaphoreUse& use, SemaphoreAction action, const Graph& graph)
{
    // A slot of 4 bytes leaves the upper half of the value constant; this half is nearly always 0.
    const std::uint64_t upper = use.slot && use.slot->width == 4 ? use.value >> 32 : 0;
    const std::string value = use.slot ? to_text(*use.slot, graph) : fmt::format("{}", use.value);
    return fmt::format(
        "{} {} {}{}{}", semaphore_text(use.semaphore, graph), action == SemaphoreAction::wait ? ">=" : "=", value,
        upper != 0 ? fmt::format(" + {:#x} * 2^32", upper) : "", use.flags != 0 ? ", no memory synchronisation" : "");
}

Result<void> check_value_slot(const Slot& slot, const Graph& graph)
{
    // An address must not leave the process, and would mean nothing to the other side.
    if (slot.kind != SlotKind::scalar || slot.offset != 0)
        return fail(ErrorCode::corrupt, "its value is not a scalar at offset 0");
    if (auto ok = validate_slot(slot, Reach::inside, graph); !ok) return ok;
    switch (const Scalar& scalar = graph.scalars[slot.target]; scalar.type) {
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64: return {};
    default:
        return fail(ErrorCode::corrupt, "its value is the scalar '{}' of type {}, expected an integer",
                    printable(scalar.name), warmgraph::to_string(scalar.type));
    }
}

Result<void> check_use(const SemaphoreUse& use, SemaphoreAction action, const Graph& graph)
{
    if (use.semaphore >= graph.semaphores.size())
        return fail(ErrorCode::corrupt, "index {} is out of range, the graph has {}", use.semaphore,
                    graph.semaphores.size());
    const std::uint32_t known = action == SemaphoreAction::signal ? k_signal_skip_memsync : k_wait_skip_memsync;
    if ((use.flags & ~known) != 0)
        return fail(ErrorCode::corrupt, "flags {:#x} are not known for a {}", use.flags, action_text(action));
    return use.slot ? check_value_slot(*use.slot, graph) : Result<void>{};
}

void compare_uses(const NodeDifference& out, const SemaphoreUse& a, const SemaphoreUse& b)
{
    if (a.semaphore != b.semaphore)
        out.line("", semaphore_text(a.semaphore, out.recorded()), semaphore_text(b.semaphore, out.now()));
    out.number("value", canonical_value(a), canonical_value(b));
    if (a.slot && b.slot)
        out.slot(*a.slot, *b.slot);
    else
        out.number("slots", int{a.slot.has_value()}, int{b.slot.has_value()});
    out.number("flags", a.flags, b.flags);
}

SemaphoreUse to_use(const flat::SemaphoreUse& use)
{
    return {use.semaphore(), use.value(), use.slot() == nullptr ? std::nullopt : std::optional{to_slot(*use.slot())},
            use.flags()};
}

struct SemaphoresFormat {
    using Work = SemaphoresNode;
    using Flat = flat::Semaphores;

    static std::string_view kind(const Work& node) noexcept;
    static void digest(Sha256& hash, const Work& node);
    static void compare(const NodeDifference& out, const Work& a, const Work& b);
    static Result<void> validate(const Work& node, const Graph& graph, const Limits& limits);
    static std::uint64_t footprint(const Work& node) noexcept { return items_size<SemaphoreUse>(node.uses.size()); }

    static flatbuffers::Offset<Flat> to_flat(FlatBuilder& builder, const Work& node);
    static Result<void> check_flat(const Flat& node, const Limits& limits)
    {
        return check_count("semaphores", count(node.uses()), limits.semaphores_per_node);
    }
    static std::uint64_t flat_footprint(const Flat& node) { return items_size<SemaphoreUse>(count(node.uses())); }
    static Work from_flat(const Flat& node)
    {
        return {static_cast<SemaphoreAction>(node.action()), to_vector<SemaphoreUse>(node.uses(), to_use)};
    }

    static void json(Json& out, const Work& node, const Graph& graph);
    static NodeRow row(const Work& node, const Graph& graph)
    {
        return {.parameters = fmt::format("{}", fmt::join(texts(node, graph), ", "))};
    }
    static std::vector<std::string> label(const Work& node, const Graph& graph)
    {
        auto lines = texts(node, graph);
        lines.insert(lines.begin(), std::string{kind(node)});
        return lines;
    }

private:
    static std::vector<std::string> texts(const Work& node, const Graph& graph)
    {
        std::vector<std::string> all;
        for (const SemaphoreUse& use : node.uses) all.push_back(use_text(use, node.action, graph));
        return all;
    }
};

std::string_view SemaphoresFormat::kind(const SemaphoresNode& node) noexcept
{
    switch (node.action) {
    case SemaphoreAction::signal: return "semaphore signal";
    case SemaphoreAction::wait: return "semaphore wait";
    }
    return "semaphores";
}

void SemaphoresFormat::digest(Sha256& hash, const SemaphoresNode& node)
{
    put(hash, node.action);
    put_count(hash, node.uses.size());
    for (const SemaphoreUse& use : node.uses) {
        put(hash, use.semaphore);
        put(hash, canonical_value(use));
        put_count(hash, use.slot ? 1 : 0);
        if (use.slot) put(hash, *use.slot);
        put(hash, use.flags);
    }
}

void SemaphoresFormat::compare(const NodeDifference& out, const SemaphoresNode& a, const SemaphoresNode& b)
{
    if (a.action != b.action) out.line("", action_text(a.action), action_text(b.action));
    out.number("semaphores", a.uses.size(), b.uses.size());
    for (std::size_t i = 0; i < std::min(a.uses.size(), b.uses.size()); ++i)
        compare_uses(out.part(fmt::format("semaphore {}", i)), a.uses[i], b.uses[i]);
}

Result<void> SemaphoresFormat::validate(const SemaphoresNode& node, const Graph& graph, const Limits& limits)
{
    if (node.action != SemaphoreAction::signal && node.action != SemaphoreAction::wait)
        return fail(ErrorCode::corrupt, "action {} is unknown", static_cast<int>(node.action));
    if (node.uses.empty() || node.uses.size() > limits.semaphores_per_node)
        return fail(ErrorCode::corrupt, "{} semaphores, expected 1 to {}", node.uses.size(),
                    limits.semaphores_per_node);
    for (std::size_t i = 0; i < node.uses.size(); ++i)
        if (auto ok = check_use(node.uses[i], node.action, graph); !ok)
            return within(fmt::format("semaphore {}", i), std::move(ok.error()));
    return {};
}

flatbuffers::Offset<flat::Semaphores> SemaphoresFormat::to_flat(FlatBuilder& builder, const SemaphoresNode& node)
{
    const auto uses = write_tables(builder, node.uses, [&](const SemaphoreUse& use) {
        const auto slot = use.slot ? write(builder, *use.slot) : flatbuffers::Offset<flat::Slot>{};
        return flat::CreateSemaphoreUse(builder, use.semaphore, canonical_value(use), slot, use.flags);
    });
    return flat::CreateSemaphores(builder, static_cast<flat::SemaphoreAction>(node.action), uses);
}

void SemaphoresFormat::json(Json& out, const SemaphoresNode& node, const Graph& graph)
{
    set_list(out, "semaphores", node.uses, [&](Json& item, const SemaphoreUse& use) {
        set_number(item, "semaphore", use.semaphore);
        set_name(item, "name", graph.semaphores, use.semaphore);
        set_number(item, "value", use.value);
        if (use.slot)
            set_slot(item, "slot", *use.slot, graph);
        else
            set_null(item, "slot");
        set_number(item, "flags", use.flags);
        set_text(item, "text", use_text(use, node.action, graph));
    });
}

} // namespace

const NodeFormat& format_of(std::type_identity<SemaphoresNode>) noexcept
{
    static const NodeFormatOf<SemaphoresFormat> format;
    return format;
}

} // namespace warmgraph::cachefmt
