#include "classify/scratch_order.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "warmgraph/backends/node_places.hpp"

namespace warmgraph {

namespace {

/// A pool of the first capture, and the pool of the other capture that may be the same.
struct Pair {
    std::size_t first = 0, moved = 0;
    auto operator<=>(const Pair&) const = default;
};

struct PlaceInPool {
    std::size_t pool = 0;
    std::uint64_t offset = 0;
};

std::optional<PlaceInPool> place_of(const CapturedGraph& capture, std::uint64_t word)
{
    for (std::size_t i = 0; i < capture.scratch.size(); ++i) {
        const MemoryRef& memory = capture.scratch[i].second;
        const std::uint64_t offset = word - memory.address.flat();
        if (offset < memory.size) return PlaceInPool{i, offset};
    }
    return std::nullopt;
}

class Votes {
public:
    Votes(const CapturedGraph& first, const CapturedGraph& moved) : m_first(first), m_moved(moved)
    {
        const auto& nodes = first.graph.nodes;
        if (nodes.size() != moved.graph.nodes.size()) return; // structural_difference() reports this
        for (std::size_t i = 0; i < nodes.size(); ++i) count(nodes[i].work, moved.graph.nodes[i].work);
    }
    /// Returns the pairs. Pairs with the most votes come first; of pairs with equal votes, the pairs that keep the
    /// order.
    [[nodiscard]] std::vector<Pair> by_votes() const
    {
        std::vector<Pair> result;
        for (const auto& [pair, votes] : m_votes) result.push_back(pair);
        std::ranges::stable_sort(result, [this](const Pair& a, const Pair& b) {
            const int of_a = m_votes.at(a), of_b = m_votes.at(b);
            return of_a != of_b ? of_a > of_b : (a.first == a.moved) > (b.first == b.moved);
        });
        return result;
    }

private:
    void count(const backends::RawWork& work, const backends::RawWork& other)
    {
        if (work.index() != other.index()) return;
        backends::for_each_place(work, [&](const backends::NodePlace& place, const auto& content) {
            const auto others = backends::content_at(other, place);
            if (content.address != nullptr && others.address != nullptr)
                count(content.address->flat(), others.address->flat());
            if (content.bytes != nullptr && others.bytes != nullptr) count(ByteView{*content.bytes}, *others.bytes);
        });
    }
    void count(ByteView bytes, ByteView others)
    {
        for (std::size_t at = 0; at + sizeof(std::uint64_t) <= std::min(bytes.size(), others.size());
             at += sizeof(std::uint64_t)) {
            std::uint64_t was = 0, is = 0;
            std::memcpy(&was, bytes.data() + at, sizeof was);
            std::memcpy(&is, others.data() + at, sizeof is);
            count(was, is);
        }
    }
    void count(std::uint64_t was, std::uint64_t is)
    {
        const auto from = place_of(m_first, was), to = place_of(m_moved, is);
        if (!from || !to || from->offset != to->offset) return;
        if (m_first.scratch[from->pool].second.size == m_moved.scratch[to->pool].second.size)
            ++m_votes[{from->pool, to->pool}];
    }

    const CapturedGraph& m_first;
    const CapturedGraph& m_moved;
    std::map<Pair, int> m_votes;
};

/// Returns for each pool of the first capture the index of the matching pool of the other capture.
std::vector<std::size_t> assigned(const CapturedGraph& first, const CapturedGraph& moved)
{
    constexpr auto k_none = static_cast<std::size_t>(-1);
    const std::size_t count = first.scratch.size();
    std::vector<std::size_t> result(count, k_none);
    std::vector<bool> taken(count);
    const auto take = [&](std::size_t i, std::size_t j) {
        if (result[i] != k_none || taken[j]) return;
        result[i] = j;
        taken[j] = true;
    };
    for (const Pair& pair : Votes{first, moved}.by_votes()) take(pair.first, pair.moved);
    for (std::size_t i = 0; i < count; ++i) take(i, i);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < count; ++j)
            if (first.scratch[i].second.size == moved.scratch[j].second.size) take(i, j);
    return result;
}

} // namespace

void order_scratch(const CapturedGraph& first, CapturedGraph& moved)
{
    const auto size_of = [](const auto& named) { return named.second.size; };
    if (!std::ranges::equal(first.scratch, moved.scratch, {}, size_of, size_of)) return; // classify() refuses this
    const auto memory = moved.scratch;
    const auto order = assigned(first, moved);
    for (std::size_t i = 0; i < order.size(); ++i) moved.scratch[i].second = memory[order[i]].second;
}

} // namespace warmgraph
