#include "classify/check_captures.hpp"

#include <algorithm>

#include "classify/structural_difference.hpp"
#include "warmgraph/backends/node_places.hpp"

namespace warmgraph {

using backends::content_at;
using backends::for_each_place;
using backends::NodePlace;
using backends::NodePlaceKind;
using backends::RawGraph;
using backends::RawKernel;
using backends::RawSemaphores;
using backends::RawWork;

namespace {

/// Describes the first byte in which two lists of parameters or attributes differ. The graphs have the same structure.
template <class List>
std::optional<std::string> byte_difference(const List& first, const List& other, std::string_view what)
{
    for (std::size_t i = 0; i < first.size(); ++i) {
        const Bytes &a = first[i].value, &b = other[i].value;
        const auto at = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
        if (at == a.size()) continue;
        const std::size_t from = at / 8 * 8, width = std::min<std::size_t>(8, a.size() - from);
        std::uint64_t was = 0, is = 0;
        std::memcpy(&was, a.data() + from, width);
        std::memcpy(&is, b.data() + from, width);
        return fmt::format("{} {} byte {}: {:#x} and then {:#x}", what, i, from, was, is);
    }
    return std::nullopt;
}

std::string value_difference(const RawSemaphores& first, const RawSemaphores& other)
{
    for (std::size_t i = 0; i < first.uses.size(); ++i)
        if (first.uses[i].value != other.uses[i].value)
            return fmt::format(" with semaphore {} of value {} and then {}", i, first.uses[i].value,
                               other.uses[i].value);
    return " with another edge";
}

/// Describes the difference between unequal graphs of the same structure.
std::string word_difference(const RawGraph& first, const RawGraph& other)
{
    for (std::size_t i = 0; i < first.nodes.size(); ++i) {
        if (first.nodes[i] == other.nodes[i]) continue;
        const std::string node = describe_node(first, i);
        if (const auto* semaphores = std::get_if<RawSemaphores>(&first.nodes[i].work))
            return node + value_difference(*semaphores, std::get<RawSemaphores>(other.nodes[i].work));
        const auto* kernel = std::get_if<RawKernel>(&first.nodes[i].work);
        if (kernel == nullptr) return node + " with another address";
        const auto& then = std::get<RawKernel>(other.nodes[i].work);
        if (auto found = byte_difference(kernel->params, then.params, "parameter")) return node + ", " + *found;
        if (auto found = byte_difference(kernel->attributes, then.attributes, "launch attribute"))
            return node + ", " + *found;
        return node + " with another address";
    }
    return "memory allocations in other positions of the graph";
}

Result<void> check_scratch(const Captures& captures)
{
    if (!captures.moved) return {};
    const auto &first = captures.first.scratch, &moved = captures.moved->scratch;
    if (moved.size() != first.size())
        return fail(ErrorCode::not_recordable, "it allocates {} scratch regions and then {}", first.size(),
                    moved.size());
    for (std::size_t i = 0; i < first.size(); ++i)
        if (first[i].first != moved[i].first || first[i].second.size != moved[i].second.size)
            return fail(ErrorCode::not_recordable, "it allocates scratch '{}' of {} bytes and then '{}' of {}",
                        first[i].first, first[i].second.size, moved[i].first, moved[i].second.size);
    return {};
}

Result<void> check_structure(const Captures& captures)
{
    const auto& first = captures.first;
    if (first.graph.nodes.empty())
        return fail(ErrorCode::not_recordable, "it recorded nothing: enqueue the work on Recorder::stream()");
    if (captures.again && first.graph != captures.again->graph) {
        const auto difference = structural_difference(first.graph, captures.again->graph);
        return fail(ErrorCode::not_recordable,
                    "its second run enqueued something else ({}): the enqueued work must depend only on its inputs, "
                    "scalars and values",
                    difference ? *difference : word_difference(first.graph, captures.again->graph));
    }
    if (captures.moved)
        if (const auto difference = structural_difference(first.graph, captures.moved->graph))
            return fail(ErrorCode::not_recordable, "what it enqueues depends on addresses: {}", *difference);
    return check_scratch(captures);
}

/// Checks that no address and no attribute follows a scalar, because no backend can check such an address before the
/// launch. REQUIRES: the captures have the same structure.
Result<void> check_fixed(const std::string& scalar, const CapturedGraph& first, const CapturedGraph& probe,
                         std::size_t index)
{
    const RawWork &work = first.graph.nodes[index].work, &other = probe.graph.nodes[index].work;
    bool has_other_address = false, has_other_attribute = false;
    for_each_place(work, [&](const NodePlace& place, const auto& was) {
        const auto is = content_at(other, place);
        if (was.address != nullptr) has_other_address |= *was.address != *is.address;
        if (place.kind == NodePlaceKind::attribute) has_other_attribute |= *was.bytes != *is.bytes;
    });
    if (has_other_address)
        return fail(ErrorCode::not_recordable,
                    "{} takes an address that depends on the scalar '{}': pass the offset to the kernel as an integer",
                    describe_node(first.graph, index), scalar);
    if (has_other_attribute)
        return fail(ErrorCode::not_recordable,
                    "{} has launch attributes that depend on the scalar '{}': declare it in Spec::values",
                    describe_node(first.graph, index), scalar);
    return {};
}

} // namespace

Result<void> check_probe(const Interface& interface, const CapturedGraph& first, const ScalarProbe& probe)
{
    const std::string& scalar = interface.scalars[probe.scalar].name;
    if (const auto difference = structural_difference(first.graph, probe.capture.graph))
        return fail(ErrorCode::not_recordable,
                    "what it enqueues depends on the scalar '{}': {}; declare it in Spec::values to record a variant "
                    "for each value, or mask inside the kernel",
                    scalar, *difference);
    for (std::size_t i = 0; i < first.graph.nodes.size(); ++i)
        if (auto checked = check_fixed(scalar, first, probe.capture, i); !checked) return checked;
    return {};
}

Result<void> check_captures(const Interface& interface, const Captures& captures)
{
    if (auto checked = check_structure(captures); !checked) return checked;
    for (const ScalarProbe& probe : captures.probes)
        if (auto checked = check_probe(interface, captures.first, probe); !checked) return checked;
    return {};
}

} // namespace warmgraph
