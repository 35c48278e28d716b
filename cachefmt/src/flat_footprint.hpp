// Computes the memory that a verified flatbuffer will need, before anything is copied. The sums equal those of
// footprint(). They stop at the budget, so that visiting a table that many places share takes limited time.
#pragma once

#include <cstdint>
#include <optional>

#include <entry_generated.h>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

/// Checks the numbers of nodes, edges, regions and parameters, and that every node has a known kind and its table.
[[nodiscard]] Result<void> check_counts(const flat::Payload& payload, const Limits& limits);

/// The most memory that a payload of this size may become. The writer shares nothing, so an empty node, the smallest
/// table with 8 bytes, grows most: to sizeof(Node).
[[nodiscard]] std::uint64_t memory_budget(std::uint64_t raw_bytes, std::uint64_t cap) noexcept;

/// The most tables that fit the budget, because each becomes at least a slot.
[[nodiscard]] std::uint32_t most_tables(std::uint64_t budget) noexcept;

/// Returns `corrupt` if the data is over the budget.
[[nodiscard]] Result<void> check_footprint(const flat::Header& header, std::uint64_t budget);
[[nodiscard]] Result<void> check_footprint(const flat::Payload& payload, std::uint64_t budget);

/// The exact sums, for tests; nullopt if over the budget.
[[nodiscard]] std::optional<std::uint64_t> flat_footprint(const flat::Header& header, std::uint64_t budget);
[[nodiscard]] std::optional<std::uint64_t> flat_footprint(const flat::Payload& payload, std::uint64_t budget);

} // namespace warmgraph::cachefmt
