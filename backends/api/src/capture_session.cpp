#include "warmgraph/backends/capture_session.hpp"

#include <algorithm>

namespace warmgraph::backends {

Result<void> CaptureSession::add(Frontier& frontier, RawWork work)
{
    const std::scoped_lock lock(m_mutex);
    if (m_ended) return fail(ErrorCode::not_recordable, "another thread ended the capture");
    const auto index = static_cast<std::uint32_t>(m_graph.nodes.size());
    m_graph.nodes.push_back({std::move(work), std::move(frontier)});
    frontier.assign(1, index);
    return {};
}

void CaptureSession::merge(Frontier& frontier, const Frontier& other) const
{
    const std::scoped_lock lock(m_mutex);
    Frontier all = frontier;
    all.insert(all.end(), other.begin(), other.end());
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    frontier.clear();
    for (const std::uint32_t node : all) {
        const bool implied =
            std::ranges::any_of(all, [&](std::uint32_t later) { return later > node && reaches(later, node); });
        if (!implied) frontier.push_back(node);
    }
}

bool CaptureSession::reaches(std::uint32_t from, std::uint32_t to) const
{
    // Dependencies have lower indices, so one descending sweep marks every ancestor of `from` down to `to`.
    std::vector<bool> marked(from - to + 1, false);
    marked[from - to] = true;
    for (std::uint32_t node = from; node > to; --node) {
        if (!marked[node - to]) continue;
        for (const std::uint32_t dependency : m_graph.nodes[node].dependencies) {
            if (dependency >= to) marked[dependency - to] = true;
        }
    }
    return marked[0];
}

void CaptureSession::fail_with(Error error)
{
    const std::scoped_lock lock(m_mutex);
    if (!m_failure) m_failure = std::move(error);
}

Result<RawGraph> CaptureSession::end(const Frontier& frontier)
{
    const std::scoped_lock lock(m_mutex);
    m_ended = true;
    if (m_failure) return std::unexpected(*m_failure);
    std::vector<bool> has_successor(m_graph.nodes.size(), false);
    for (const RawNode& node : m_graph.nodes) {
        for (const std::uint32_t dependency : node.dependencies) has_successor[dependency] = true;
    }
    for (std::uint32_t node = 0; node < m_graph.nodes.size(); ++node) {
        if (has_successor[node] || std::ranges::binary_search(frontier, node)) continue;
        return fail(
            ErrorCode::not_recordable,
            "a forked stream was not joined: node {} of {} is not waited for; record an event in the forked stream "
            "and wait for it in the stream that captures",
            node, m_graph.nodes.size());
    }
    return std::move(m_graph);
}

bool CaptureSession::has_ended() const noexcept
{
    const std::scoped_lock lock(m_mutex);
    return m_ended;
}

Result<void> StreamCapture::begin()
{
    if (is_active()) return refuse("begin_capture (the stream is being captured already)");
    m_session = std::make_shared<CaptureSession>();
    m_frontier.clear();
    m_is_origin = true;
    return {};
}

Result<RawGraph> StreamCapture::end()
{
    if (!is_active()) return fail(ErrorCode::not_recordable, "end_capture without begin_capture");
    if (!m_is_origin) return refuse("end_capture of a forked stream (end the stream that began the capture)");
    const auto session = std::exchange(m_session, nullptr);
    m_is_origin = false;
    return session->end(std::exchange(m_frontier, {}));
}

Result<void> StreamCapture::wait(const CapturedPoint& point)
{
    if (point.session->has_ended()) {
        Error error{ErrorCode::invalid_argument, "the event was recorded in a capture that has ended; record it again"};
        if (is_active()) return failed(std::move(error));
        return std::unexpected(std::move(error));
    }
    if (!is_active()) {
        m_session = point.session;
        m_frontier = point.frontier;
        m_is_origin = false;
        return {};
    }
    if (m_session != point.session) return refuse("wait for an event of another capture");
    m_session->merge(m_frontier, point.frontier);
    return {};
}

std::unexpected<Error> StreamCapture::refuse(std::string_view call)
{
    return failed(
        {ErrorCode::not_recordable, fmt::format("{} cannot be recorded; move it out of the captured function", call)});
}

std::unexpected<Error> StreamCapture::failed(Error error)
{
    m_session->fail_with(error);
    return std::unexpected(std::move(error));
}

} // namespace warmgraph::backends
