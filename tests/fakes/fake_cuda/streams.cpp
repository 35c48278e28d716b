#include "streams.hpp"

#include <algorithm>
#include <set>

#include "graphs.hpp"
#include "memory.hpp"

namespace fake_cuda {
namespace {

Handles<CUstream_st>& streams()
{
    static Handles<CUstream_st> all;
    return all;
}

Handles<CUevent_st>& events()
{
    static Handles<CUevent_st> all;
    return all;
}

void merge(std::vector<CUgraphNode>& frontier, const std::vector<CUgraphNode>& other)
{
    for (CUgraphNode node : other) {
        if (std::ranges::find(frontier, node) == frontier.end()) frontier.push_back(node);
    }
}

/// Whether each node of the graph leads to a node in `frontier`.
bool is_joined(const CUgraph_st& graph, const std::vector<CUgraphNode>& frontier)
{
    std::set<CUgraphNode> ends(frontier.begin(), frontier.end());
    for (const auto& edge : graph.edges) ends.insert(edge.from);
    return std::ranges::all_of(graph.nodes, [&](const auto& node) { return ends.contains(node.get()); });
}

/// Ends the capture in all its streams.
void leave(const CaptureState& capture)
{
    for (const auto& [handle, stream] : streams().objects()) {
        if (stream->capture.get() != &capture) continue;
        stream->frontier.clear();
        stream->capture.reset();
    }
}

CUresult break_capture(CUstream stream)
{
    stream->capture->is_broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

} // namespace

long live_streams() { return streams().size(); }
long live_events() { return events().size(); }
bool is_stream(CUstream stream)
{
    return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || streams().has(stream);
}
bool is_event(CUevent event) { return events().has(event); }
bool is_capturing(CUstream stream) { return stream != nullptr && streams().has(stream) && stream->capture; }

CUresult enqueue(CUstream stream, Work work)
{
    FAKE_CUDA_CHECK(require_context());
    if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (!is_capturing(stream)) {
        run(work);
        return CUDA_SUCCESS;
    }
    if (stream->capture->is_broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream->frontier = {add_node(stream->capture->graph, std::move(work), stream->frontier)};
    return CUDA_SUCCESS;
}

} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuStreamCreate(CUstream* stream, unsigned int)
{
    FAKE_CUDA_CHECK(require_context());
    *stream = streams().add(std::make_unique<CUstream_st>());
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    FAKE_CUDA_CHECK(require_context());
    if (!streams().has(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture && stream->capture->origin == stream) {
        const auto capture = stream->capture;
        leave(*capture);
        destroy_graph(capture->graph);
    }
    streams().erase(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    FAKE_CUDA_CHECK(require_context());
    if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    return is_capturing(stream) ? break_capture(stream) : sticky_error();
}

CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    FAKE_CUDA_CHECK(require_context());
    if (!is_stream(stream) || !is_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (flags == CU_EVENT_WAIT_EXTERNAL) return enqueue(stream, WaitWork{event});
    if (!event->capture) {
        if (!is_capturing(stream)) return CUDA_SUCCESS;
        stream->capture->is_broken = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (event->capture->graph == nullptr) return CUDA_ERROR_INVALID_VALUE; // the capture with the event has ended
    if (!streams().has(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (is_capturing(stream) && stream->capture != event->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    stream->capture = event->capture;
    merge(stream->frontier, event->frontier);
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode)
{
    FAKE_CUDA_CHECK(require_context());
    if (!streams().has(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = std::make_shared<CaptureState>(CaptureState{create_graph(), stream, false});
    stream->frontier.clear();
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph)
{
    *graph = nullptr;
    if (!streams().has(stream)) return CUDA_ERROR_INVALID_HANDLE;
    const auto capture = stream->capture;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    CUresult status = CUDA_SUCCESS;
    if (!is_joined(*capture->graph, stream->frontier)) status = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (capture->is_broken) status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    leave(*capture);
    const CUgraph made = std::exchange(capture->graph, nullptr);
    if (status == CUDA_SUCCESS)
        *graph = made;
    else
        destroy_graph(made);
    return status;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status)
{
    if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    *status = !is_capturing(stream)        ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->is_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode)
{
    static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::swap(*mode, current);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned int)
{
    FAKE_CUDA_CHECK(require_context());
    *event = events().add(std::make_unique<CUevent_st>());
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) { return events().erase(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    FAKE_CUDA_CHECK(require_context());
    if (!is_stream(stream) || !is_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (flags == CU_EVENT_RECORD_EXTERNAL) return enqueue(stream, RecordWork{event});
    if (is_capturing(stream)) {
        event->capture = stream->capture;
        event->frontier = stream->frontier;
    } else {
        event->capture.reset();
        event->frontier.clear();
    }
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

CUresult cuEventSynchronize(CUevent event)
{
    if (!is_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    return event->capture ? CUDA_ERROR_CAPTURED_EVENT : sticky_error();
}

CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }
