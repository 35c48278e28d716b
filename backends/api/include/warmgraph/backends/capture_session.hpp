// Stream capture for backends whose driver has none (OpenCL, the fake): turns the work that streams enqueue between
// begin_capture and end_capture into a graph. Fork and join follow the rules of CUDA's stream capture.
//
// Threads: a session may be used by several streams at once; a StreamCapture belongs to its stream.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// The nodes that a stream's next work depends on: sorted, unique, none reachable from another.
using Frontier = std::vector<std::uint32_t>;

/// The graph under construction, shared by the stream that began the capture and those forked from it.
class CaptureSession {
public:
    /// Appends a node that depends on `frontier`; the new node alone is then the frontier. not_recordable: the capture
    /// has ended.
    [[nodiscard]] Result<void> add(Frontier& frontier, RawWork work);
    /// Adds `other` to `frontier`.
    void merge(Frontier& frontier, const Frontier& other) const;
    /// Stores the first failure; end() returns it.
    void fail_with(Error error);
    /// Ends the capture. not_recordable if a node does not reach `frontier`, because a forked stream was not joined.
    [[nodiscard]] Result<RawGraph> end(const Frontier& frontier);
    [[nodiscard]] bool has_ended() const noexcept;

private:
    [[nodiscard]] bool reaches(std::uint32_t from, std::uint32_t to) const;

    mutable std::mutex m_mutex;
    RawGraph m_graph;
    std::optional<Error> m_failure;
    bool m_ended = false;
};

/// A point in the order of captured work.
struct CapturedPoint {
    std::shared_ptr<CaptureSession> session;
    Frontier frontier;
};

/// One stream's part in a capture.
class StreamCapture {
public:
    [[nodiscard]] bool is_active() const noexcept { return m_session && !m_session->has_ended(); }
    [[nodiscard]] Result<void> begin();
    [[nodiscard]] Result<RawGraph> end();
    /// REQUIRES: is_active() was true; another thread may end a forked stream's capture at any time.
    [[nodiscard]] Result<void> add(RawWork work) { return m_session->add(m_frontier, std::move(work)); }
    [[nodiscard]] CapturedPoint point() const { return {m_session, m_frontier}; }
    /// Waits for a captured point. A stream that is not capturing joins that capture.
    [[nodiscard]] Result<void> wait(const CapturedPoint& point);
    /// Fails for a call that no graph can hold; end() will fail too. REQUIRES: is_active().
    [[nodiscard]] std::unexpected<Error> refuse(std::string_view call);
    /// Returns the error and stores it for the end of the capture. REQUIRES: is_active().
    [[nodiscard]] std::unexpected<Error> failed(Error error);

private:
    std::shared_ptr<CaptureSession> m_session;
    Frontier m_frontier;
    bool m_is_origin = false;
};

} // namespace warmgraph::backends
