#include "classify/unwritten_bytes.hpp"

#include <algorithm>

#include "classify/host_stack.hpp"

namespace warmgraph {

namespace {

const Bytes* value_at(const backends::RawGraph& graph, std::size_t node, std::size_t param)
{
    if (node >= graph.nodes.size()) return nullptr;
    const auto* const kernel = std::get_if<backends::RawKernel>(&graph.nodes[node].work);
    return kernel != nullptr && param < kernel->params.size() ? &kernel->params[param].value : nullptr;
}

bool holds(const backends::RawGraph& graph, const UnwrittenByte& place, Paint paint)
{
    const Bytes* const value = value_at(graph, place.node, place.param);
    return value != nullptr && place.offset < value->size() && (*value)[place.offset] == byte_of(paint);
}

bool is_unwritten(const Captures& captures, const UnwrittenByte& place)
{
    const auto is_painted = [&](const Capture& capture) { return holds(capture.graph, place, Paint::one); };
    return holds(captures.again->graph, place, Paint::other) && (!captures.moved || is_painted(*captures.moved)) &&
           std::ranges::all_of(captures.probes, [&](const ScalarProbe& probe) { return is_painted(probe.capture); });
}

} // namespace

std::vector<UnwrittenByte> unwritten_bytes(const Captures& captures)
{
    std::vector<UnwrittenByte> result;
    if (!captures.again) return result;
    const auto& nodes = captures.first.graph.nodes;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        const auto* const kernel = std::get_if<backends::RawKernel>(&nodes[node].work);
        for (std::size_t param = 0; kernel != nullptr && param < kernel->params.size(); ++param) {
            const Bytes& value = kernel->params[param].value;
            for (std::size_t offset = 0; offset < value.size(); ++offset)
                if (value[offset] == byte_of(Paint::one) && is_unwritten(captures, {node, param, offset}))
                    result.push_back({node, param, offset});
        }
    }
    return result;
}

void clear(backends::RawGraph& graph, const std::vector<UnwrittenByte>& bytes)
{
    for (const UnwrittenByte& place : bytes) {
        if (!holds(graph, place, Paint::one) && !holds(graph, place, Paint::other)) continue;
        std::get<backends::RawKernel>(graph.nodes[place.node].work).params[place.param].value[place.offset] =
            std::byte{0};
        graph.native.reset();
    }
}

std::size_t count_words(const std::vector<UnwrittenByte>& bytes) noexcept
{
    constexpr std::size_t k_word = 8;
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
