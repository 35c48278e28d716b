// The driver calls that enqueue, order or wait for work, and the stream that each is about.
#pragma once

#include <cstdint>
#include <span>

#include <cuda.h>
#include <cupti.h>

namespace warmgraph::backends::cuda {

struct WatchedCall {
    enum class Kind : std::uint8_t {
        enqueue,
        enqueue_wait, ///< and it waits for somebody else, or signals him
        batch,        ///< of memory operations, some of which may wait
        graph,        ///< a launch of one
        synchronise,
        record_event,
        wait_event,
    };
    CUpti_CallbackId id = 0;
    const char* name = nullptr; ///< as CUPTI has it: "cuMemcpyHtoDAsync_v2_ptsz"
    Kind kind = Kind::enqueue;
    bool is_per_thread = false;                       ///< its null stream is the per-thread default stream
    bool is_recent = false;                           ///< CUPTI before 12.8 does not know it
    CUstream (*stream)(const void* params) = nullptr; ///< null: it has none, and means the null stream
    CUevent (*event)(const void* params) = nullptr;   ///< of record_event and wait_event
    bool (*is_waiting)(const void* params) = nullptr; ///< of batch
};

/// By id.
[[nodiscard]] std::span<const WatchedCall> watched_calls() noexcept;
/// nullptr: not watched.
[[nodiscard]] const WatchedCall* find_watched_call(CUpti_CallbackId id) noexcept;

} // namespace warmgraph::backends::cuda
