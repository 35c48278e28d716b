// What a verified flatbuffer will become, counted before anything is copied out of it. The sums are those of
// footprint(), and stop at the budget: one table that many places name is not visited for each of them.
#pragma once

#include <cstdint>
#include <optional>

#include <entry_generated.h>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

/// Numbers of nodes, edges, regions, parameters, and every node of a known kind with its table present.
[[nodiscard]] Result<void> check_counts(const flat::Payload& payload, const Limits& limits);

/// Memory that a payload of so many bytes may become. The writer shares nothing, so that its smallest table, an empty
/// node of 8 bytes, is what grows most: to sizeof(Node).
[[nodiscard]] std::uint64_t memory_budget(std::uint64_t raw_bytes, std::uint64_t cap) noexcept;

/// Tables that something within the budget can have: a slot is the smallest thing that one becomes.
[[nodiscard]] std::uint32_t most_tables(std::uint64_t budget) noexcept;

/// corrupt: it is over the budget.
[[nodiscard]] Result<void> check_footprint(const flat::Header& header, std::uint64_t budget);
[[nodiscard]] Result<void> check_footprint(const flat::Payload& payload, std::uint64_t budget);

/// The exact sums, for tests: nullopt over the budget.
[[nodiscard]] std::optional<std::uint64_t> flat_footprint(const flat::Header& header, std::uint64_t budget);
[[nodiscard]] std::optional<std::uint64_t> flat_footprint(const flat::Payload& payload, std::uint64_t budget);

} // namespace warmgraph::cachefmt
