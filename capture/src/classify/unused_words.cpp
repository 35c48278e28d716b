#include "classify/unused_words.hpp"

#include <algorithm>
#include <cstring>

namespace warmgraph {

namespace {

constexpr std::size_t k_word_bytes = sizeof(std::uint64_t);

/// Returns the word at `offset`. Bytes behind the end of the value are zero.
std::uint64_t word_from(ByteView value, std::size_t offset)
{
    std::uint64_t word = 0;
    std::memcpy(&word, value.data() + offset, std::min(k_word_bytes, value.size() - offset));
    return word;
}

} // namespace

std::vector<UnusedWord> unused_words(const ParamIndex& index, const WordPlace& place, ByteView first, ByteView other,
                                     std::span<const std::size_t> bytes)
{
    std::vector<UnusedWord> result;
    for (const std::size_t byte : bytes) {
        const std::size_t offset = byte / k_word_bytes * k_word_bytes;
        if (result.empty() || result.back().offset != offset) {
            result.push_back({.node = index.node,
                              .param = index.param,
                              .offset = offset,
                              .bytes = {},
                              .first = {},
                              .place = fmt::format("{} takes at {}", place.subject(), place.at(offset)),
                              .was = word_from(first, offset),
                              .is = word_from(other, offset)});
        }
        result.back().bytes.push_back(byte);
        result.back().first.push_back(first[byte]);
    }
    return result;
}

void set_unused(Bytes& value, const UnusedWord& word, UnusedFill what)
{
    for (std::size_t i = 0; i < word.bytes.size(); ++i)
        value[word.bytes[i]] = what == UnusedFill::zero ? std::byte{0} : word.first[i];
}

} // namespace warmgraph
