// Public, C++20. Each code names what the caller should do about it.
#pragma once

#include <cstdint>
#include <string_view>

#include "warmgraph/export.hpp"

namespace warmgraph {

enum class ErrorCode : std::uint8_t {
    invalid_argument = 1,     ///< fix the call: a name, shape, binding, option or handle is wrong
    not_recordable = 2,       ///< the function did something that a graph cannot hold; calls run it directly
    compile_failed = 3,       ///< fix the kernel source; the compiler's log is in the message
    miss_forbidden = 4,       ///< policy require_hit or no_compile, or no callable: record first
    corrupt = 5,              ///< stored bytes are damaged or hostile; they are quarantined and recorded again
    stale = 6,                ///< stored under other conditions (version, device, key): the entry is recorded again
    not_found = 7,            ///< the named thing does not exist
    io_failed = 8,            ///< the cache folder failed; caching is off for this call
    no_space = 9,             ///< the disk is full; nothing was published
    permission_denied = 10,   ///< the cache folder belongs to another user or is not writable
    driver_failed = 11,       ///< the accelerator's driver refused a call; the driver's text is in the message
    out_of_memory = 12,       ///< device or host memory ran out
    unsupported = 13,         ///< this backend or device cannot do this
    verification_failed = 14, ///< the restored graph did not reproduce the function: it is not published
    internal = 15,            ///< a defect of warmgraph: please report it
    partly_launched =
        16,         ///< the driver failed during a launch: state may be half updated, start again from a known state
    untrusted = 17, ///< the entry has no accepted signature: it stays in the cache, and is recorded again
};

/// The code's name as written above, e.g. "not_recordable".
[[nodiscard]] WARMGRAPH_API std::string_view to_string(ErrorCode code) noexcept;

} // namespace warmgraph
