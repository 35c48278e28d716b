// The two halves of a pair (forward and backward) in one entry: joined when they are published, and each taken out again
// as the entry of a function of its own.
//
// A joined entry has one set of guards: the facts, then forward's tensors and values as "forward.x", then backward's as
// "backward.dy". Its graph has forward's nodes and then backward's (Graph::second_half). Regions and scalars are named
// likewise; what forward saves for backward is one region of both, the arena "saved.h": in forward's own graph an
// output, in backward's an input. docs/pairs.md says why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

enum class Half : std::uint8_t { forward, backward };
/// "forward", "backward"
[[nodiscard]] std::string_view to_string(Half half) noexcept;

/// The fact that every entry of a pair has, and its halves: what is saved, as text.
inline constexpr const char* k_saved_fact = "pair.saved";
/// A backward half's own fact: the guards digest of the forward half, in hex. So backward's guards cover forward's.
inline constexpr const char* k_forward_fact = "pair.forward";

[[nodiscard]] bool is_pair(const Guards& guards) noexcept;

/// The half's own header: its guards, and their digest in the key. Its info is the pair's. nullopt where the entry is
/// none of a pair.
[[nodiscard]] std::optional<EntryHeader> half_header(const EntryHeader& pair, Half half);
/// The half as an entry; a tombstone's graph is empty. corrupt: the entry is none of a pair, or its halves do not come
/// apart (a node of one uses what is the other's).
[[nodiscard]] Result<Entry> half_of(const Entry& pair, Half half);

/// Both halves as one entry. `saved`: the names of forward's outputs that are backward's inputs. Errors:
/// not_recordable (they were recorded under other facts, or backward for another forward), unsupported (a half with
/// events or semaphores).
[[nodiscard]] Result<Entry> join(const Entry& forward, const Entry& backward, std::span<const std::string> saved);

} // namespace warmgraph::cachefmt
