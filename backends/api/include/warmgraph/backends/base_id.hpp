// Ids for allocations of devices without flat addresses (Address::base).
#pragma once

#include <cstdint>

namespace warmgraph::backends {

/// Returns an id that is unique in the process, over all backends and devices, so that a device recognises memory of
/// another device and released memory. Ids are 4 KiB apart and not canonical on x86-64 and arm64: no pointer and no
/// plausible integer equals an id. Thread-safe.
[[nodiscard]] std::uint64_t next_base_id() noexcept;

} // namespace warmgraph::backends
