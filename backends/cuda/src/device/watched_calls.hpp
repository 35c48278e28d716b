// The driver calls that enqueue, order or wait for work, and the stream that each one concerns.
#pragma once

#include <cstdint>
#include <span>

#include <cuda.h>
#include <cupti.h>

namespace warmgraph::backends::cuda {

struct WatchedCall {
    enum class Kind : std::uint8_t {
        enqueue,
        enqueue_wait, ///< also waits for outside work, or signals it
        batch,        ///< memory operations, some of which may wait
        graph,        ///< launches a graph
        synchronise,
        record_event,
        wait_event,
    };
    CUpti_CallbackId id = 0;
    const char* name = nullptr; ///< CUPTI's name: "cuMemcpyHtoDAsync_v2_ptsz"
    Kind kind = Kind::enqueue;
    bool is_per_thread = false;                       ///< its null stream is the per-thread default stream
    bool is_recent = false;                           ///< unknown to CUPTI before 12.8
    CUstream (*stream)(const void* params) = nullptr; ///< null: no parameter, it uses the null stream
    CUevent (*event)(const void* params) = nullptr;   ///< the call's event, for record_event and wait_event
    bool (*is_waiting)(const void* params) = nullptr; ///< whether a call of kind `batch` waits
};

/// Returns the calls, sorted by id.
[[nodiscard]] std::span<const WatchedCall> watched_calls() noexcept;
/// Returns nullptr if the call is not watched.
[[nodiscard]] const WatchedCall* find_watched_call(CUpti_CallbackId id) noexcept;

} // namespace warmgraph::backends::cuda
