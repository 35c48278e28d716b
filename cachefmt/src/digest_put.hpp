// Parts of the digests' canonical forms (docs/format.md, "Digests"). Each part of variable length follows its length or
// count, so that different contents never give the same bytes.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
void put(Sha256& hash, T value)
{
    hash.update(std::as_bytes(std::span{&value, 1}));
}

inline void put_count(Sha256& hash, std::size_t count) { put(hash, static_cast<std::uint64_t>(count)); }

inline void put(Sha256& hash, const std::string& text) { hash.update_field(std::string_view{text}); }
inline void put(Sha256& hash, const Bytes& bytes) { hash.update_field(ByteView{bytes}); }

inline void put(Sha256& hash, const Slot& slot)
{
    put(hash, slot.kind);
    put(hash, slot.target);
    put(hash, slot.offset);
    put(hash, slot.width);
    put(hash, slot.addend);
}

inline void put(Sha256& hash, const std::vector<Slot>& slots)
{
    put_count(hash, slots.size());
    for (const Slot& slot : slots) put(hash, slot);
}

} // namespace warmgraph::cachefmt
