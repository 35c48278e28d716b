// Parts of the conversion from verified tables to the model. Absent values become empty.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <entry_generated.h>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

template <class Vector>
std::uint64_t count(const Vector* vector)
{
    return vector == nullptr ? 0 : vector->size();
}

inline std::string to_text(const flatbuffers::String* text) { return text == nullptr ? std::string{} : text->str(); }

inline Bytes to_bytes(const flatbuffers::Vector<std::uint8_t>* bytes)
{
    if (bytes == nullptr) return {};
    const auto view = std::as_bytes(std::span{bytes->data(), bytes->size()});
    return {view.begin(), view.end()};
}

template <class Out, class Tables, class Convert>
std::vector<Out> to_vector(const Tables* tables, Convert convert)
{
    std::vector<Out> out;
    if (tables == nullptr) return out;
    out.reserve(tables->size());
    for (const auto* table : *tables) out.push_back(convert(*table));
    return out;
}

inline Slot to_slot(const flat::Slot& slot)
{
    return {static_cast<SlotKind>(slot.kind()), slot.target(), slot.offset(), slot.width(), slot.addend()};
}

} // namespace warmgraph::cachefmt
