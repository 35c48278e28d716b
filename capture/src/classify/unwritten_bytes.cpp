#include "classify/unwritten_bytes.hpp"

#include <algorithm>
#include <optional>

#include "classify/host_stack.hpp"
#include "classify/words.hpp"

namespace warmgraph {

namespace {

const Bytes* value_at(const backends::RawGraph& graph, std::size_t node, std::size_t param)
{
    if (node >= graph.nodes.size()) return nullptr;
    const auto* const kernel = std::get_if<backends::RawKernel>(&graph.nodes[node].work);
    return kernel != nullptr && param < kernel->params.size() ? &kernel->params[param].value : nullptr;
}

std::optional<std::byte> byte_at(const backends::RawGraph& graph, const UnwrittenByte& place)
{
    const Bytes* const value = value_at(graph, place.node, place.param);
    return value != nullptr && place.offset < value->size() ? std::optional{(*value)[place.offset]} : std::nullopt;
}

bool holds(const backends::RawGraph& graph, const UnwrittenByte& place, Paint paint)
{
    const auto byte = byte_at(graph, place);
    return byte && (*byte & place.bits) == (byte_of(paint) & place.bits);
}

bool is_unwritten(const Captures& captures, const UnwrittenByte& place)
{
    const auto is_painted = [&](const CapturedGraph& capture) { return holds(capture.graph, place, Paint::one); };
    return holds(captures.again->graph, place, Paint::other) && (!captures.moved || is_painted(*captures.moved)) &&
           std::ranges::all_of(captures.probes, [&](const ScalarProbe& probe) { return is_painted(probe.capture); });
}

/// Whether the byte has the value `first` in all captures that ran over Paint::one.
bool is_steady(const Captures& captures, std::span<const CapturedGraph> more, const UnwrittenByte& place,
               std::byte first)
{
    const auto is_same = [&](const CapturedGraph& capture) { return byte_at(capture.graph, place) == first; };
    return (!captures.moved || is_same(*captures.moved)) && std::ranges::all_of(more, is_same) &&
           std::ranges::all_of(captures.probes, [&](const ScalarProbe& probe) { return is_same(probe.capture); });
}

/// Visits each byte of each parameter of the graph's kernels.
template <class Visit>
void for_each_byte(const backends::RawGraph& graph, Visit visit)
{
    for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
        const auto* const kernel = std::get_if<backends::RawKernel>(&graph.nodes[node].work);
        for (std::size_t param = 0; kernel != nullptr && param < kernel->params.size(); ++param) {
            const Bytes& value = kernel->params[param].value;
            for (std::size_t offset = 0; offset < value.size(); ++offset)
                visit(UnwrittenByte{node, param, offset}, value[offset]);
        }
    }
}

} // namespace

std::vector<UnwrittenByte> unwritten_bytes(const Captures& captures)
{
    std::vector<UnwrittenByte> result;
    if (!captures.again) return result;
    for_each_byte(captures.first.graph, [&](const UnwrittenByte& place, std::byte byte) {
        if (byte == byte_of(Paint::one) && is_unwritten(captures, place)) result.push_back(place);
    });
    return result;
}

std::vector<UnwrittenByte> unwritten_bits(const Captures& captures, std::span<const CapturedGraph> more)
{
    std::vector<UnwrittenByte> result;
    if (!captures.again) return result;
    for_each_byte(captures.first.graph, [&](UnwrittenByte place, std::byte byte) {
        const auto other = byte_at(captures.again->graph, place);
        if (!other || *other == byte || !is_steady(captures, more, place, byte)) return;
        place.bits = byte ^ *other;
        if (holds(captures.first.graph, place, Paint::one)) result.push_back(place);
    });
    return result;
}

void add(std::vector<UnwrittenByte>& to, const std::vector<UnwrittenByte>& more)
{
    to.insert(to.end(), more.begin(), more.end());
    std::ranges::sort(to);
}

void clear(backends::RawGraph& graph, const std::vector<UnwrittenByte>& bytes)
{
    for (const UnwrittenByte& place : bytes) {
        if (!holds(graph, place, Paint::one) && !holds(graph, place, Paint::other)) continue;
        std::get<backends::RawKernel>(graph.nodes[place.node].work).params[place.param].value[place.offset] &=
            ~place.bits;
        graph.native.reset();
    }
}

std::size_t count_words(const std::vector<UnwrittenByte>& bytes) noexcept
{
    std::size_t words = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto is_of_one_word = [&](const UnwrittenByte& a, const UnwrittenByte& b) {
            return a.node == b.node && a.param == b.param && a.offset / k_word == b.offset / k_word;
        };
        if (i == 0 || !is_of_one_word(bytes[i - 1], bytes[i])) ++words;
    }
    return words;
}

} // namespace warmgraph
