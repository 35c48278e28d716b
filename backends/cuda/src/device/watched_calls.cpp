#include "device/watched_calls.hpp"

#include <algorithm>
#include <array>

// The header's macros choose one version; this file lists each version separately.
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
#undef cuStreamBatchMemOp
#undef cuMemPrefetchAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

namespace warmgraph::backends::cuda {
namespace {

using Kind = WatchedCall::Kind;

template <class Params>
const Params& as(const void* params) noexcept
{
    return *static_cast<const Params*>(params);
}

bool waits(const CUstreamBatchMemOpParams* operations, unsigned int count) noexcept
{
    return std::any_of(operations, operations + count, [](const CUstreamBatchMemOpParams& operation) {
        return operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
               operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    });
}

// Each call's name, and its stream from its parameters `p`. Each has a variant ("_ptsz") for programs whose null stream
// is the per-thread stream.
#define WARMGRAPH_ENQUEUES(X)                                                                                          \
    X(cuLaunchKernel, p.hStream)                                                                                       \
    X(cuLaunchKernelEx, p.config->hStream)                                                                             \
    X(cuLaunchCooperativeKernel, p.hStream)                                                                            \
    X(cuLaunchHostFunc, p.hStream)                                                                                     \
    X(cuStreamAddCallback, p.hStream)                                                                                  \
    X(cuMemcpyAsync, p.hStream)                                                                                        \
    X(cuMemcpyPeerAsync, p.hStream)                                                                                    \
    X(cuMemcpyHtoDAsync_v2, p.hStream)                                                                                 \
    X(cuMemcpyDtoHAsync_v2, p.hStream)                                                                                 \
    X(cuMemcpyDtoDAsync_v2, p.hStream)                                                                                 \
    X(cuMemcpyHtoAAsync_v2, p.hStream)                                                                                 \
    X(cuMemcpyAtoHAsync_v2, p.hStream)                                                                                 \
    X(cuMemcpy2DAsync_v2, p.hStream)                                                                                   \
    X(cuMemcpy3DAsync_v2, p.hStream)                                                                                   \
    X(cuMemcpy3DPeerAsync, p.hStream)                                                                                  \
    X(cuMemsetD8Async, p.hStream)                                                                                      \
    X(cuMemsetD16Async, p.hStream)                                                                                     \
    X(cuMemsetD32Async, p.hStream)                                                                                     \
    X(cuMemsetD2D8Async, p.hStream)                                                                                    \
    X(cuMemsetD2D16Async, p.hStream)                                                                                   \
    X(cuMemsetD2D32Async, p.hStream)                                                                                   \
    X(cuMemAllocAsync, p.hStream)                                                                                      \
    X(cuMemAllocFromPoolAsync, p.hStream)                                                                              \
    X(cuMemFreeAsync, p.hStream)                                                                                       \
    X(cuMemPrefetchAsync, p.hStream)                                                                                   \
    X(cuMemPrefetchAsync_v2, p.hStream)                                                                                \
    X(cuMemMapArrayAsync, p.hStream)                                                                                   \
    X(cuStreamAttachMemAsync, p.hStream)                                                                               \
    X(cuStreamWriteValue32, p.stream)                                                                                  \
    X(cuStreamWriteValue32_v2, p.stream)                                                                               \
    X(cuStreamWriteValue64, p.stream)                                                                                  \
    X(cuStreamWriteValue64_v2, p.stream)
#define WARMGRAPH_WAITS(X)                                                                                             \
    X(cuStreamWaitValue32, p.stream)                                                                                   \
    X(cuStreamWaitValue32_v2, p.stream)                                                                                \
    X(cuStreamWaitValue64, p.stream)                                                                                   \
    X(cuStreamWaitValue64_v2, p.stream)                                                                                \
    X(cuSignalExternalSemaphoresAsync, p.stream)                                                                       \
    X(cuWaitExternalSemaphoresAsync, p.stream)
#if CUDA_VERSION >= 12080
#define WARMGRAPH_BATCHES(X)                                                                                           \
    X(cuMemcpyBatchAsync, p.hStream)                                                                                   \
    X(cuMemcpy3DBatchAsync, p.hStream)
#else
#define WARMGRAPH_BATCHES(X)
#endif
#if CUDA_VERSION >= 13000
#define WARMGRAPH_NEWER_BATCHES(X)                                                                                     \
    X(cuMemcpyBatchAsync_v2, p.hStream)                                                                                \
    X(cuMemcpy3DBatchAsync_v2, p.hStream)                                                                              \
    X(cuMemPrefetchBatchAsync, p.hStream)                                                                              \
    X(cuMemDiscardBatchAsync, p.hStream)                                                                               \
    X(cuMemDiscardAndPrefetchBatchAsync, p.hStream)
#else
#define WARMGRAPH_NEWER_BATCHES(X)
#endif

// Synchronous calls without a stream parameter use the null stream. Their per-thread variant is "_ptds".
#define WARMGRAPH_SYNCHRONOUS(X)                                                                                       \
    X(cuMemcpy)                                                                                                        \
    X(cuMemcpyPeer)                                                                                                    \
    X(cuMemcpyHtoD_v2)                                                                                                 \
    X(cuMemcpyDtoH_v2)                                                                                                 \
    X(cuMemcpyDtoD_v2)                                                                                                 \
    X(cuMemcpyDtoA_v2)                                                                                                 \
    X(cuMemcpyAtoD_v2)                                                                                                 \
    X(cuMemcpyHtoA_v2)                                                                                                 \
    X(cuMemcpyAtoH_v2)                                                                                                 \
    X(cuMemcpyAtoA_v2)                                                                                                 \
    X(cuMemcpy2D_v2)                                                                                                   \
    X(cuMemcpy2DUnaligned_v2)                                                                                          \
    X(cuMemcpy3D_v2)                                                                                                   \
    X(cuMemcpy3DPeer)                                                                                                  \
    X(cuMemsetD8_v2)                                                                                                   \
    X(cuMemsetD16_v2)                                                                                                  \
    X(cuMemsetD32_v2)                                                                                                  \
    X(cuMemsetD2D8_v2)                                                                                                 \
    X(cuMemsetD2D16_v2)                                                                                                \
    X(cuMemsetD2D32_v2)

#define WARMGRAPH_FROM(call, type, expression)                                                                         \
    [](const void* params) noexcept -> type {                                                                          \
        const auto& p = as<call##_params>(params);                                                                     \
        return expression;                                                                                             \
    }
#define WARMGRAPH_ROW(call, kind_of, per_thread, recent, from_stream)                                                  \
    WatchedCall                                                                                                        \
    {                                                                                                                  \
        .id = CUPTI_DRIVER_TRACE_CBID_##call, .name = #call, .kind = Kind::kind_of, .is_per_thread = per_thread,       \
        .is_recent = recent, .stream = WARMGRAPH_FROM(call, CUstream, from_stream)                                     \
    }
#define WARMGRAPH_BOTH(call, kind_of, recent, from_stream)                                                             \
    WARMGRAPH_ROW(call, kind_of, false, recent, from_stream),                                                          \
        WARMGRAPH_ROW(call##_ptsz, kind_of, true, recent, from_stream)
#define WARMGRAPH_ENQUEUE_ROWS(call, from_stream) WARMGRAPH_BOTH(call, enqueue, false, from_stream),
#define WARMGRAPH_WAIT_ROWS(call, from_stream) WARMGRAPH_BOTH(call, enqueue_wait, false, from_stream),
#define WARMGRAPH_RECENT_ROWS(call, from_stream) WARMGRAPH_BOTH(call, enqueue, true, from_stream),
#define WARMGRAPH_SYNCHRONOUS_ROWS(call)                                                                               \
    WatchedCall{.id = CUPTI_DRIVER_TRACE_CBID_##call, .name = #call},                                                  \
        WatchedCall{.id = CUPTI_DRIVER_TRACE_CBID_##call##_ptds, .name = #call "_ptds", .is_per_thread = true},
#define WARMGRAPH_EVENT_ROW(call, kind_of, per_thread)                                                                 \
    WatchedCall                                                                                                        \
    {                                                                                                                  \
        .id = CUPTI_DRIVER_TRACE_CBID_##call, .name = #call, .kind = Kind::kind_of, .is_per_thread = per_thread,       \
        .stream = WARMGRAPH_FROM(call, CUstream, p.hStream), .event = WARMGRAPH_FROM(call, CUevent, p.hEvent)          \
    }
#define WARMGRAPH_EVENT_ROWS(call, kind_of)                                                                            \
    WARMGRAPH_EVENT_ROW(call, kind_of, false), WARMGRAPH_EVENT_ROW(call##_ptsz, kind_of, true)
#define WARMGRAPH_BATCH_ROW(call, per_thread)                                                                          \
    WatchedCall                                                                                                        \
    {                                                                                                                  \
        .id = CUPTI_DRIVER_TRACE_CBID_##call, .name = #call, .kind = Kind::batch, .is_per_thread = per_thread,         \
        .stream = WARMGRAPH_FROM(call, CUstream, p.stream),                                                            \
        .is_waiting = WARMGRAPH_FROM(call, bool, waits(p.paramArray, p.count))                                         \
    }

constexpr auto by_id(auto rows)
{
    std::ranges::sort(rows, {}, &WatchedCall::id);
    return rows;
}

constexpr auto k_calls = by_id(std::to_array<WatchedCall>({
    WARMGRAPH_ENQUEUES(WARMGRAPH_ENQUEUE_ROWS)        // each row ends with its own comma
    WARMGRAPH_WAITS(WARMGRAPH_WAIT_ROWS)              //
    WARMGRAPH_BATCHES(WARMGRAPH_RECENT_ROWS)          //
    WARMGRAPH_NEWER_BATCHES(WARMGRAPH_RECENT_ROWS)    //
    WARMGRAPH_SYNCHRONOUS(WARMGRAPH_SYNCHRONOUS_ROWS) //
    WARMGRAPH_ROW(cuLaunchCooperativeKernelMultiDevice, enqueue, false, false,
                  p.numDevices > 0 ? p.launchParamsList->hStream : nullptr),
    WARMGRAPH_BOTH(cuGraphLaunch, graph, false, p.hStream),
    WARMGRAPH_BOTH(cuStreamSynchronize, synchronise, false, p.hStream),
    WatchedCall{.id = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, .name = "cuCtxSynchronize", .kind = Kind::synchronise},
    WatchedCall{
        .id = CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, .name = "cuEventSynchronize", .kind = Kind::synchronise},
#if CUDA_VERSION >= 13000
    WatchedCall{.id = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize_v2,
                .name = "cuCtxSynchronize_v2",
                .kind = Kind::synchronise,
                .is_recent = true},
#endif
    WARMGRAPH_EVENT_ROWS(cuEventRecord, record_event),
    WARMGRAPH_EVENT_ROWS(cuEventRecordWithFlags, record_event),
    WARMGRAPH_EVENT_ROWS(cuStreamWaitEvent, wait_event),
    WARMGRAPH_BATCH_ROW(cuStreamBatchMemOp, false),
    WARMGRAPH_BATCH_ROW(cuStreamBatchMemOp_ptsz, true),
    WARMGRAPH_BATCH_ROW(cuStreamBatchMemOp_v2, false),
    WARMGRAPH_BATCH_ROW(cuStreamBatchMemOp_v2_ptsz, true),
}));

} // namespace

std::span<const WatchedCall> watched_calls() noexcept { return k_calls; }

const WatchedCall* find_watched_call(CUpti_CallbackId id) noexcept
{
    const auto* const found = std::ranges::lower_bound(k_calls, id, {}, &WatchedCall::id);
    return found != k_calls.end() && found->id == id ? &*found : nullptr;
}

} // namespace warmgraph::backends::cuda
