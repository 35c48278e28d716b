// The index of a folder of objects: HTTP has no listing. It is an object beside the others, and advisory: it may lack names
// that are there and have names that are gone. No get() of a name asks it.
//
// Format, little-endian:
//   index = "WGINDEX" version:u8 count:u32 item*
//   item  = name_size:u16 name size:u64 version:u64 head_size:u32 head
// The version is 1. Names are relative to the folder, of [A-Za-z0-9._/-], each only once, the latest put last. `size` and
// `version` are the object's Stamp. `head` is the object's beginning, empty where a listing needs only names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "entry_head.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::remote::http {

struct IndexItem {
    std::string name;
    std::uint64_t size = 0;
    std::uint64_t version = 0; ///< 0: not known
    Bytes head{};              ///< at most k_most_head bytes
    bool operator==(const IndexItem&) const = default;
};

inline constexpr std::size_t k_most_items = 4096;
inline constexpr std::size_t k_most_index_bytes = 64ULL << 20;
inline constexpr std::size_t k_most_name = 512;

/// Each name only once.
using Index = std::vector<IndexItem>;

/// Puts the item at the end, and removes an older item of its name. Beyond k_most_items, the oldest item goes.
void add(Index& index, IndexItem item);
/// Returns false if the name is not there.
bool remove(Index& index, std::string_view name);

/// Heads of the oldest items are left out where the bytes would exceed k_most_index_bytes.
[[nodiscard]] Bytes encode(const Index& index);
/// `corrupt`: not the format above, or over its limits. Allocates no more than the bytes given. The bytes may be hostile.
[[nodiscard]] Result<Index> decode_index(ByteView bytes);

} // namespace warmgraph::remote::http
