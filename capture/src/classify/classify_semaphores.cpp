#include "classify/classify_semaphores.hpp"

#include <algorithm>

#include "classify/classify_scalars.hpp"
#include "classify/structural_difference.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

using cachefmt::SemaphoreUse;
using cachefmt::Slot;

namespace {

const backends::RawSemaphore& use_of(const CapturedGraph& capture, std::size_t node, std::size_t number)
{
    return std::get<backends::RawSemaphores>(capture.graph.nodes[node].work).uses[number];
}

/// A scalar of 4 bytes fills the low half of a semaphore's value; a scalar of 8 bytes fills the whole value.
SemaphoreUse following(const Slot& slot, const backends::RawSemaphore& first)
{
    const std::uint64_t kept = first.value & ~bits_of_width(slot.width);
    return {0, kept, slot, first.flags};
}

bool is_integer(DType type) noexcept
{
    return type == DType::i32 || type == DType::u32 || type == DType::i64 || type == DType::u64;
}

/// Whether a slot for the low 4 of a semaphore value's 8 bytes may overflow when the scalar has another value of its
/// range. Two captures cannot show how the high half would change.
bool may_carry(DType type, std::uint64_t low, std::uint64_t was, const ScalarRange& range) noexcept
{
    const auto number = [type](std::uint64_t bits) {
        return type == DType::i32 ? std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))}
                                  : static_cast<std::int64_t>(bits & 0xFFFF'FFFFULL);
    };
    const std::int64_t base = static_cast<std::int64_t>(low) - number(was);
    return base + number(range.low) < 0 || base + number(range.high) > 0xFFFF'FFFFLL;
}

/// For an adopted graph: returns the scalar that changed by the same distance as the value; nullopt if no scalar did.
/// No two scalars changed by the same distance.
std::optional<Slot> follows(const Interface& interface, const Captures& captures, std::uint64_t first,
                            std::uint64_t then)
{
    if (captures.moved_scalars.size() != interface.scalars.size()) return std::nullopt;
    for (std::size_t i = 0; i < interface.scalars.size(); ++i) {
        const DType type = interface.scalars[i].dtype;
        const std::size_t width = size_of(type);
        const std::uint64_t mask = bits_of_width(width);
        const std::uint64_t was = captures.scalars[i], is = captures.moved_scalars[i];
        if (!is_integer(type) || ((then - first) & mask) != ((is - was) & mask) || ((then ^ first) & ~mask) != 0)
            continue;
        if (width == 4 && may_carry(type, first & mask, was & mask, interface.ranges[i])) continue;
        const std::uint64_t addend = (first - was) & mask;
        return Slot{cachefmt::SlotKind::scalar, static_cast<std::uint32_t>(i), 0, static_cast<std::uint8_t>(width),
                    width == 8 ? static_cast<std::int64_t>(addend)
                               : static_cast<std::int32_t>(static_cast<std::uint32_t>(addend))};
    }
    return std::nullopt;
}

} // namespace

Result<std::string> semaphore_name(const backends::RawGraph& graph, const NamedHandles& declared, std::size_t node,
                                   std::size_t number)
{
    const std::uint64_t handle = std::get<backends::RawSemaphores>(graph.nodes[node].work).uses[number].semaphore;
    const auto found = find_handle(declared, handle);
    if (found == declared.end())
        return fail(
            ErrorCode::not_recordable,
            "{} uses an external semaphore ({:#x}) that was not declared: declare it by name (Spec::semaphores), so "
            "that a replay knows which semaphore of its process to use, and so that test runs do not signal it",
            describe_node(graph, node), handle);
    const auto again =
        std::find_if(std::next(found), declared.end(), [&](const auto& one) { return one.second == handle; });
    if (again != declared.end())
        return fail(ErrorCode::not_recordable,
                    "{} uses an external semaphore ({:#x}) that was declared as '{}' and as '{}', but another process "
                    "may give two semaphores for the two names: declare it once",
                    describe_node(graph, node), handle, found->first, again->first);
    return found->first;
}

Result<void> check_semaphore_names(const backends::RawGraph& graph, const NamedHandles& declared)
{
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
        const auto* const semaphores = std::get_if<backends::RawSemaphores>(&graph.nodes[node].work);
        for (std::size_t i = 0; semaphores != nullptr && i < semaphores->uses.size(); ++i)
            if (auto name = semaphore_name(graph, declared, node, i); !name) return std::unexpected(name.error());
    }
    return {};
}

Result<SemaphoreUse> semaphore_value(const Interface& interface, const Captures& captures, std::size_t node,
                                     std::size_t number)
{
    const backends::RawSemaphore& first = use_of(captures.first, node, number);
    const std::string where = describe_node(captures.first.graph, node);
    if (const std::uint64_t then = captures.moved ? use_of(*captures.moved, node, number).value : first.value;
        then != first.value) {
        if (const auto slot = follows(interface, captures, first.value, then)) return following(*slot, first);
        return fail(ErrorCode::not_recordable,
                    "{} gives semaphore {} the value {}, but {} in another capture: the value must be a constant, or a "
                    "declared scalar plus a constant",
                    where, number, first.value, then);
    }
    const auto slots = scalar_slots(interface, captures,
                                    {node, {backends::NodePlaceKind::semaphore, static_cast<std::uint32_t>(number)}});
    if (!slots) return std::unexpected(slots.error());
    if (slots->empty()) return SemaphoreUse{0, first.value, {}, first.flags};
    const Slot& slot = slots->front();
    const NumberDecl& scalar = interface.scalars[slot.target];
    if (slots->size() > 1 || slot.offset != 0 || !is_integer(scalar.dtype))
        return fail(ErrorCode::not_recordable,
                    "{} gives semaphore {} a value made from the scalar '{}' ({}) that is not the scalar plus a "
                    "constant: pass an integer scalar plus a constant, or declare the scalar in Spec::values",
                    where, number, scalar.name, to_string(scalar.dtype));
    return following(slot, first);
}

} // namespace warmgraph
