// Parts of the conversion from the model to the schema's tables. No data is shared, and empty values are absent.
#pragma once

#include <string>
#include <vector>

#include <entry_generated.h>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// flatbuffers' builder under a name that headers can forward-declare (newer releases make theirs an alias).
struct FlatBuilder : flatbuffers::FlatBufferBuilder {
    using flatbuffers::FlatBufferBuilder::FlatBufferBuilder;
};

inline flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> write(FlatBuilder& builder, ByteView bytes)
{
    if (bytes.empty()) return 0; // absent and empty mean the same
    return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

inline flatbuffers::Offset<flatbuffers::String> write(FlatBuilder& builder, const std::string& text)
{
    return builder.CreateString(text.data(), text.size());
}

inline flatbuffers::Offset<flat::Slot> write(FlatBuilder& builder, const Slot& slot)
{
    return flat::CreateSlot(builder, static_cast<flat::SlotKind>(slot.kind), slot.target, slot.offset, slot.width,
                            slot.addend);
}

/// A vector of tables, absent when empty.
template <class Range, class Write>
auto write_tables(FlatBuilder& builder, const Range& range, Write write_one)
{
    std::vector<decltype(write_one(*range.begin()))> offsets;
    offsets.reserve(range.size());
    for (const auto& item : range) offsets.push_back(write_one(item));
    return offsets.empty() ? decltype(builder.CreateVector(offsets))(0) : builder.CreateVector(offsets);
}

inline auto write_slots(FlatBuilder& builder, const std::vector<Slot>& slots)
{
    return write_tables(builder, slots, [&](const Slot& slot) { return write(builder, slot); });
}

/// A vector of structs, absent when empty.
template <class Struct, class Range, class Convert>
flatbuffers::Offset<flatbuffers::Vector<const Struct*>> write_structs(FlatBuilder& builder, const Range& range,
                                                                      Convert convert)
{
    if (range.empty()) return 0;
    Struct* target = nullptr;
    const auto offset = builder.CreateUninitializedVectorOfStructs(range.size(), &target);
    for (const auto& item : range) *target++ = convert(item);
    return offset;
}

} // namespace warmgraph::cachefmt
