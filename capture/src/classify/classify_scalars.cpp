#include "classify/classify_scalars.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "classify/check_captures.hpp"
#include "classify/structural_difference.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

using cachefmt::Slot;
using cachefmt::SlotKind;

namespace {

std::uint64_t word_at(ByteView bytes, std::size_t offset, std::size_t width) noexcept
{
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, width);
    return word;
}

/// Returns the place's bytes. Their number is the same in every capture; empty if the node has no such place.
ByteView bytes_of(const ScalarPlace& place, const CapturedGraph& capture)
{
    const auto content = backends::content_at(capture.graph.nodes[place.node].work, place.place);
    if (content.number != nullptr) return std::as_bytes(std::span{content.number, 1});
    return content.bytes != nullptr ? ByteView{*content.bytes} : ByteView{};
}

bool is_semaphore(const ScalarPlace& place) noexcept { return place.place.kind == backends::NodePlaceKind::semaphore; }

/// Returns a text such as "parameter 2".
std::string text_of(const ScalarPlace& place)
{
    return fmt::format("{} {}", is_semaphore(place) ? "the value of semaphore" : "parameter", place.place.index);
}

/// Returns the cure for a value that is not the scalar plus a constant.
std::string_view cure_of(const ScalarPlace& place) noexcept
{
    return is_semaphore(place) ? "pass the scalar, or the scalar plus a constant" : "compute it in the kernel";
}

Result<std::vector<Slot>> probe_slots(const Interface& interface, const Captures& captures, const ScalarPlace& place,
                                      const ScalarProbe& probe)
{
    const auto& scalar = interface.scalars[probe.scalar];
    const std::size_t width = size_of(scalar.dtype);
    const bool is_float = is_real(scalar.dtype);
    const std::uint64_t current = captures.scalars[probe.scalar];
    const std::uint64_t mask = bits_of_width(width);
    const ByteView before = bytes_of(place, captures.first), after = bytes_of(place, probe.capture);
    std::vector<Slot> slots;
    for (std::size_t offset = 0; offset < before.size(); offset += width) {
        const std::size_t bytes = std::min(width, before.size() - offset);
        if (std::memcmp(before.data() + offset, after.data() + offset, bytes) == 0) continue;
        const std::uint64_t was = word_at(before, offset, bytes), is = word_at(after, offset, bytes);
        const bool follows = bytes == width && (is_float ? was == current && is == probe.bits
                                                         : ((is - was) & mask) == ((probe.bits - current) & mask));
        if (!follows)
            return fail(ErrorCode::not_recordable,
                        "{} takes at {} byte {} a value made from the scalar '{}' that is not the scalar "
                        "itself{}: {:#x} for {}, {:#x} for "
                        "{}; {}, or declare it in Spec::values",
                        describe_node(captures.first.graph, place.node), text_of(place), offset, scalar.name,
                        is_float ? "" : " plus a constant", was, number_text(scalar.dtype, current), is,
                        number_text(scalar.dtype, probe.bits), cure_of(place));
        std::int64_t addend = 0;
        if (!is_float) {
            const std::uint64_t difference = (was - current) & mask;
            addend = width == 8 ? static_cast<std::int64_t>(difference)
                                : static_cast<std::int32_t>(static_cast<std::uint32_t>(difference));
        }
        slots.push_back({SlotKind::scalar, static_cast<std::uint32_t>(probe.scalar), static_cast<std::uint32_t>(offset),
                         static_cast<std::uint8_t>(width), addend});
    }
    return slots;
}

std::unexpected<Error> follows_sometimes(const Interface& interface, const Captures& captures, const ScalarPlace& place,
                                         const ScalarProbe& probe)
{
    const auto& scalar = interface.scalars[probe.scalar];
    return fail(ErrorCode::not_recordable,
                "{} takes at {} a value that follows the scalar '{}' only for some of its values (seen at {})",
                describe_node(captures.first.graph, place.node), text_of(place), scalar.name,
                number_text(scalar.dtype, probe.bits));
}

} // namespace

Result<std::vector<Slot>> scalar_slots(const Interface& interface, const Captures& captures, const ScalarPlace& place)
{
    std::vector<Slot> all;
    std::optional<std::size_t> previous; // the scalar whose slots were found last
    std::vector<Slot> expected;
    for (const ScalarProbe& probe : captures.probes) {
        auto slots = probe_slots(interface, captures, place, probe);
        if (!slots) return slots;
        if (previous == probe.scalar) {
            if (*slots != expected) return follows_sometimes(interface, captures, place, probe);
            continue;
        }
        previous = probe.scalar;
        expected = *slots;
        for (const Slot& slot : *slots) {
            const auto overlaps = [&slot](const Slot& other) {
                return slot.offset < other.offset + other.width && other.offset < slot.offset + slot.width;
            };
            if (std::ranges::any_of(all, overlaps))
                return fail(ErrorCode::not_recordable,
                            "{} takes at {} a value made from two scalars: pass them to the kernel one by one",
                            describe_node(captures.first.graph, place.node), text_of(place));
            all.push_back(slot);
        }
    }
    std::ranges::sort(all, {}, &Slot::offset);
    return all;
}

ProbeJudge::ProbeJudge(const Interface& interface, const Captures& captures)
    : m_interface(interface), m_captures(captures)
{
    const auto& nodes = captures.first.graph.nodes;
    for (std::size_t node = 0; node < nodes.size(); ++node)
        backends::for_each_place(nodes[node].work, [&](const backends::NodePlace& place, const auto& content) {
            // check_fixed() checks attributes and addresses.
            if (place.kind == backends::NodePlaceKind::attribute || content.address != nullptr) return;
            m_places.push_back({node, place});
        });
}

Result<void> ProbeJudge::judge(const ScalarProbe& probe)
{
    if (auto checked = check_probe(m_interface, m_captures.first, probe); !checked) return checked;
    const bool is_first = m_expected.empty();
    for (std::size_t i = 0; i < m_places.size(); ++i) {
        auto slots = probe_slots(m_interface, m_captures, m_places[i], probe);
        if (!slots) return std::unexpected(slots.error());
        if (is_first)
            m_expected.push_back(std::move(*slots));
        else if (*slots != m_expected[i])
            return follows_sometimes(m_interface, m_captures, m_places[i], probe);
    }
    return {};
}

} // namespace warmgraph
