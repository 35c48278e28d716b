#include "classify/host_addresses.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace warmgraph {

namespace {

/// The bytes [from, to) of a word that still hold the bytes of an old address. The word's other bytes are real values.
struct Remains {
    std::size_t from, to;
};
constexpr std::array<Remains, 5> k_remains{{{0, 8}, {1, 8}, {2, 8}, {0, 4}, {1, 4}}}; // the longest first

/// A word, or a half word at the end of a parameter.
struct Word {
    std::uint64_t value = 0;
    std::size_t width = 0;
};

Word word_at(const Bytes& bytes, std::size_t offset) noexcept
{
    Word word{0, std::min(sizeof(std::uint64_t), bytes.size() - offset)};
    std::memcpy(&word.value, bytes.data() + offset, word.width);
    return word;
}

/// Returns a mask of the lower `bytes` bytes.
constexpr std::uint64_t mask(std::size_t bytes) noexcept { return bytes >= 8 ? ~0ULL : (1ULL << 8 * bytes) - 1; }

bool is_in_stack(std::uint64_t word, const Remains& remains, const StackMovement& movement) noexcept
{
    const std::uint64_t overwritten = mask(remains.from);
    const std::uint64_t low = movement.bottom & ~overwritten, high = movement.top | overwritten;
    return ((word - low) & mask(remains.to)) < high - low;
}

bool went_down(std::uint64_t first, std::uint64_t again, const Remains& remains, std::uint64_t shift) noexcept
{
    const std::uint64_t left = mask(remains.to) & ~mask(remains.from);
    if (((first ^ again) & ~left) != 0) return false;
    const std::size_t bits = 8 * remains.from;
    const std::uint64_t distance = ((first & left) - (again & left)) >> bits & left >> bits;
    const std::uint64_t expected = shift >> bits & left >> bits;
    // `expected + 1`: the subtraction borrowed from bytes that were overwritten.
    return distance == expected || (remains.from > 0 && distance == expected + 1);
}

/// One kernel parameter in all captures, beginning with `first` and `again`.
class Parameter {
public:
    Parameter(std::vector<Bytes*> captures, const StackMovement& movement)
        : m_captures(std::move(captures)), m_movement(movement)
    {
    }
    std::size_t erase()
    {
        std::size_t erased = 0;
        // 4: words in structs that are aligned to 4 bytes.
        for (const std::size_t start : {std::size_t{0}, std::size_t{4}})
            for (std::size_t at = start; at + 4 <= m_captures[0]->size(); at += 8) erased += erase_at(at) ? 1 : 0;
        return erased;
    }

private:
    bool erase_at(std::size_t offset)
    {
        const Word first = word_at(*m_captures[0], offset), again = word_at(*m_captures[1], offset);
        if (first.value == again.value) return false;
        const auto is_left = [&](const Remains& remains) {
            if (remains.to > first.width || !went_down(first.value, again.value, remains, m_movement.shift))
                return false;
            return std::ranges::all_of(m_captures, [&](const Bytes* bytes) {
                return bytes == m_captures[1] || is_in_stack(word_at(*bytes, offset).value, remains, m_movement);
            });
        };
        const auto found = std::ranges::find_if(k_remains, is_left);
        if (found == k_remains.end()) return false;
        for (Bytes* bytes : m_captures)
            std::fill_n(bytes->begin() + static_cast<std::ptrdiff_t>(offset + found->from), found->to - found->from,
                        std::byte{0});
        return true;
    }
    std::vector<Bytes*> m_captures;
    const StackMovement& m_movement;
};

/// Returns the parameter's bytes; nullptr unless it is a by-value parameter of `size` bytes.
Bytes* parameter(CapturedGraph& capture, std::size_t node, std::size_t number, std::size_t size)
{
    if (node >= capture.graph.nodes.size()) return nullptr;
    auto* kernel = std::get_if<backends::RawKernel>(&capture.graph.nodes[node].work);
    if (kernel == nullptr || number >= kernel->params.size()) return nullptr;
    Bytes& value = kernel->params[number].value;
    return value.size() == size ? &value : nullptr;
}

} // namespace

std::vector<CapturedGraph*> all_of(Captures& captures)
{
    std::vector<CapturedGraph*> all{&captures.first, &*captures.again};
    if (captures.moved) all.push_back(&*captures.moved);
    for (ScalarProbe& probe : captures.probes) all.push_back(&probe.capture);
    return all;
}

std::size_t erase_host_addresses(Captures& captures, const StackMovement& movement)
{
    if (movement.shift == 0 || !captures.again) return 0;
    const auto all = all_of(captures);
    std::size_t erased = 0;
    for (std::size_t node = 0; node < captures.first.graph.nodes.size(); ++node) {
        const auto* kernel = std::get_if<backends::RawKernel>(&captures.first.graph.nodes[node].work);
        if (kernel == nullptr) continue;
        for (std::size_t i = 0; i < kernel->params.size(); ++i) {
            std::vector<Bytes*> values;
            values.reserve(all.size());
            for (CapturedGraph* capture : all)
                values.push_back(parameter(*capture, node, i, kernel->params[i].value.size()));
            if (std::ranges::find(values, nullptr) == values.end())
                erased += Parameter{std::move(values), movement}.erase();
        }
    }
    return erased;
}

} // namespace warmgraph
