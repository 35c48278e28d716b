#include "validate_slot.hpp"

#include <limits>

#include "describe.hpp"

namespace warmgraph::cachefmt {
namespace {

Result<void> region_slot(const Slot& slot, Reach reach, const Graph& graph)
{
    if (slot.target >= graph.regions.size())
        return fail(ErrorCode::corrupt, "region {} is out of range, the graph has {}", slot.target,
                    graph.regions.size());
    if (slot.width != 8) return fail(ErrorCode::corrupt, "an address takes 8 bytes, the slot has {}", slot.width);
    const Region& region = graph.regions[slot.target];
    if (reach == Reach::anywhere) {
        if (slot.addend < -k_addend_max || slot.addend > k_addend_max)
            return fail(ErrorCode::corrupt, "addend {0} of region '{1}' is out of range, expected -{2} to {2}",
                        slot.addend, printable(region.name), k_addend_max);
        return {};
    }
    // One past the end is a valid address: an end pointer, or the start of an empty range.
    if (slot.addend < 0 || static_cast<std::uint64_t>(slot.addend) > region.size)
        return fail(ErrorCode::corrupt, "addend {} is outside region '{}' of {} bytes", slot.addend,
                    printable(region.name), region.size);
    return {};
}

Result<void> scalar_slot(const Slot& slot, const Graph& graph)
{
    if (slot.target >= graph.scalars.size())
        return fail(ErrorCode::corrupt, "scalar {} is out of range, the graph has {}", slot.target,
                    graph.scalars.size());
    const Scalar& scalar = graph.scalars[slot.target];
    if (slot.width != size_of(scalar.type))
        return fail(ErrorCode::corrupt, "slot width {} does not match scalar '{}' of type {}", slot.width,
                    printable(scalar.name), warmgraph::to_string(scalar.type));
    if ((scalar.type == DType::f32 || scalar.type == DType::f64) && slot.addend != 0)
        return fail(ErrorCode::corrupt, "scalar '{}' is a {}, its addend must be 0 and is {}", printable(scalar.name),
                    warmgraph::to_string(scalar.type), slot.addend);
    if (slot.width == 4 && (slot.addend < std::numeric_limits<std::int32_t>::min() ||
                            slot.addend > std::numeric_limits<std::uint32_t>::max()))
        return fail(ErrorCode::corrupt, "addend {} does not fit scalar '{}' of 4 bytes", slot.addend,
                    printable(scalar.name));
    return {};
}

} // namespace

Result<void> validate_slot(const Slot& slot, Reach reach, const Graph& graph)
{
    if (slot.kind > SlotKind::scalar)
        return fail(ErrorCode::corrupt, "slot kind {} is unknown", static_cast<int>(slot.kind));
    if (slot.width != 4 && slot.width != 8)
        return fail(ErrorCode::corrupt, "slot width {} is neither 4 nor 8", slot.width);
    return slot.kind == SlotKind::region ? region_slot(slot, reach, graph) : scalar_slot(slot, graph);
}

Result<void> validate_slots(std::string_view what, ByteView value, const std::vector<Slot>& slots, const Graph& graph)
{
    std::uint64_t end = 0; // end of the previous slot
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const Slot& current = slots[i];
        const std::string name = fmt::format("slot {}", i);
        if (auto ok = validate_slot(current, Reach::anywhere, graph); !ok) return within(name, std::move(ok.error()));
        if (current.offset < end)
            return fail(ErrorCode::corrupt, "{}: offset {} overlaps the slot before it, or is before it", name,
                        current.offset);
        end = std::uint64_t{current.offset} + current.width;
        if (end > value.size())
            return fail(ErrorCode::corrupt, "{}: bytes {} to {} are outside the {}'s {}", name, current.offset, end,
                        what, value.size());
    }
    return {};
}

} // namespace warmgraph::cachefmt
