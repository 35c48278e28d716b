// Streams, events and stream capture. Work outside a capture is done at once, so its events need no state.
#pragma once

#include <memory>
#include <vector>

#include "driver_state.hpp"
#include "work.hpp"

namespace fake_cuda {

/// The graph that a capture builds. The stream that began the capture shares it with the streams that were forked from
/// it.
struct CaptureState {
    CUgraph graph = nullptr;
    CUstream origin = nullptr;
    bool is_broken = false; ///< whether a call was made that is not allowed in a capture
};

[[nodiscard]] long live_streams();
[[nodiscard]] long live_events();
/// Whether the handle is a stream. The default streams count, too.
[[nodiscard]] bool is_stream(CUstream stream);
[[nodiscard]] bool is_event(CUevent event);
[[nodiscard]] bool is_capturing(CUstream stream);

/// Runs the work at once. If the stream captures, makes the work a node of the captured graph instead.
[[nodiscard]] CUresult enqueue(CUstream stream, Work work);

} // namespace fake_cuda

struct CUstream_st {
    std::shared_ptr<fake_cuda::CaptureState> capture;
    std::vector<CUgraphNode> frontier; ///< the nodes on which the next captured work depends
};

struct CUevent_st {
    std::shared_ptr<fake_cuda::CaptureState> capture; ///< the capture in which it was recorded; null if there was none
    std::vector<CUgraphNode> frontier;
};
