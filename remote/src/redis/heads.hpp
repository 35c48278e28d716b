// The beginnings of entries, which the backend keeps beside them: a hash for each function, in which a reader finds the
// headers of all variants in one round trip.
#pragma once

#include <cstdint>
#include <optional>

#include "entry_head.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::remote::redis {

inline constexpr std::size_t k_head_fields = 256; ///< the most variants of a function that are read

struct Head {
    std::uint64_t size = 0; ///< bytes of the entry
    ByteView bytes;         ///< the entry's beginning
};

[[nodiscard]] Head head_of(ByteView entry);
/// The hash field: the size as 8 bytes, little endian, then the head. And the reverse; nullopt: it is none.
[[nodiscard]] Bytes encode(const Head& head);
[[nodiscard]] std::optional<Head> decode_head(ByteView field);
/// True if a reader of `extent` needs no more than the head: it has all these bytes or, where a beginning of at most
/// k_most_head is wanted, the whole header.
[[nodiscard]] bool suffices(const Head& head, const store::ReadLimit& extent);

} // namespace warmgraph::remote::redis
