// Streams, events and stream capture. Work outside a capture is done at once, so its events need no state.
#pragma once

#include <memory>
#include <vector>

#include "driver_state.hpp"
#include "work.hpp"

namespace fake_cuda {

/// A graph under construction, shared by the stream that began the capture and those forked from it.
struct CaptureState {
    CUgraph graph = nullptr;
    CUstream origin = nullptr;
    bool is_broken = false; ///< a call was made that a capture does not allow
};

[[nodiscard]] long live_streams();
[[nodiscard]] long live_events();
/// True for the default streams too.
[[nodiscard]] bool is_stream(CUstream stream);
[[nodiscard]] bool is_event(CUevent event);
[[nodiscard]] bool is_capturing(CUstream stream);

/// Runs the work at once, or makes it a node of the stream's capture.
[[nodiscard]] CUresult enqueue(CUstream stream, Work work);

} // namespace fake_cuda

struct CUstream_st {
    std::shared_ptr<fake_cuda::CaptureState> capture;
    std::vector<CUgraphNode> frontier; ///< the nodes that the next captured work depends on
};

struct CUevent_st {
    std::shared_ptr<fake_cuda::CaptureState> capture; ///< null: recorded outside a capture, or never
    std::vector<CUgraphNode> frontier;
};
