// Ids for the allocations of devices whose memory has no flat address (Address::base).
#pragma once

#include <cstdint>

namespace warmgraph::backends {

/// Given once in a process, whatever backend and device ask: memory of another device, and memory that was released,
/// are recognised instead of being taken for an allocation of one's own. Not canonical on x86-64 and arm64, so that no
/// pointer and no plausible integer equals one; 4 KiB apart. Thread-safe.
[[nodiscard]] std::uint64_t next_base_id() noexcept;

} // namespace warmgraph::backends
