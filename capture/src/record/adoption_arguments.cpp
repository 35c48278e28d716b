// Part of AdoptionSession: checks the caller's arguments before anything is read or run.
#include <algorithm>

#include "model/memory_ranges.hpp"
#include "record/adoption_session.hpp"
#include "verify/trial_conditions.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

Result<void> check_capture(const CaptureTarget& target, const Frame& frame, const AdoptedCapture& capture,
                           std::string_view which)
{
    const auto& regions = target.interface.regions;
    if (capture.graph == nullptr) return fail(ErrorCode::invalid_argument, "the {} graph is null", which);
    if (capture.regions.size() != regions.size())
        return fail(ErrorCode::invalid_argument, "the {} capture names {} regions, expected {} as declared", which,
                    capture.regions.size(), regions.size());
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const std::uint64_t extent = guards::extent_bytes(frame.tensors[i]);
        if (capture.regions[i].address.is_null() && extent == 0) continue;
        if (capture.regions[i].address.is_null() || capture.regions[i].size < extent)
            return fail(ErrorCode::invalid_argument, "'{}' has {} bytes in the {} capture, expected {}",
                        regions[i].name, capture.regions[i].address.is_null() ? 0 : capture.regions[i].size, which,
                        extent);
        if (capture.regions[i].address.offset % target.device->limits().memory_alignment != 0)
            return fail(ErrorCode::invalid_argument, "'{}' is misaligned in the {} capture", regions[i].name, which);
    }
    return {};
}

/// No two scalars may change by the same distance between the captures, because a semaphore's value shows its scalar by
/// this distance.
Result<void> AdoptionSession::check_scalars(const AdoptedCapture* second) const
{
    const auto& scalars = m_target.interface.scalars;
    if (scalars.empty()) return {};
    if (second == nullptr)
        return fail(ErrorCode::invalid_argument,
                    "'{}' declares the scalar '{}', but one capture cannot show where the scalar goes: give a second "
                    "capture with another value, or declare it in Spec::values and adopt a graph for each value",
                    m_target.name, scalars[0].name);
    if (m_first.scalars.size() != scalars.size() || second->scalars.size() != scalars.size())
        return fail(ErrorCode::invalid_argument, "the captures give {} and {} scalars, expected {} as declared",
                    m_first.scalars.size(), second->scalars.size(), scalars.size());
    std::vector<std::uint64_t> distances;
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        const std::uint64_t mask = bits_of_width(size_of(scalars[i].dtype));
        const std::uint64_t distance = (second->scalars[i] - m_first.scalars[i]) & mask;
        if (distance == 0 || std::ranges::find(distances, distance) != distances.end())
            return fail(ErrorCode::invalid_argument,
                        "the scalar '{}' is larger by {} in the second capture, {}: give it another value there",
                        scalars[i].name, distance,
                        distance == 0 ? "but its value must differ between the captures"
                                      : "and another scalar is larger by the same number");
        distances.push_back(distance);
    }
    return {};
}

/// Refuses a scalar that no semaphore uses: every call would ignore it.
Result<void> AdoptionSession::check_followed(const cachefmt::Graph& graph) const
{
    std::vector<std::uint8_t> followed(graph.scalars.size());
    for (const auto& node : graph.nodes)
        if (const auto* semaphores = std::get_if<cachefmt::SemaphoresNode>(&node))
            for (const auto& use : semaphores->uses)
                if (use.slot) followed[use.slot->target] = 1;
    const auto unused = std::ranges::find(followed, 0);
    if (unused == followed.end()) return {};
    return fail(ErrorCode::not_recordable,
                "no semaphore's value follows the scalar '{}', and in a graph that was captured elsewhere only a "
                "semaphore's value can follow a scalar: declare it in Spec::values and adopt a graph for each value",
                graph.scalars[static_cast<std::size_t>(unused - followed.begin())].name);
}

Result<void> AdoptionSession::check_arguments(const AdoptedCapture* second) const
{
    const auto& interface = m_target.interface;
    if (!m_device.limits().flat_addresses) return fail(ErrorCode::unsupported, "{} cannot adopt graphs", m_device.id());
    if (auto checked = check_scalars(second); !checked) return checked;
    if (auto checked = check_capture(m_target, m_frame, m_first, "first"); !checked) return checked;
    if (auto checked = check_no_managed(m_target, m_frame.memory); !checked) return checked;
    for (std::size_t i = 0; i < interface.regions.size(); ++i)
        if (m_first.regions[i].address != m_frame.memory[i].address)
            return fail(ErrorCode::invalid_argument,
                        "'{}' is at {:#x} in the call, but was at {:#x} in the first capture: pass the memory of the "
                        "first capture, with valid contents",
                        interface.regions[i].name, m_frame.memory[i].address.flat(), m_first.regions[i].address.flat());
    for (const auto& [name, memory] : m_first.scratch)
        for (std::size_t i = 0; i < interface.regions.size(); ++i) {
            if (overlap(m_frame.memory[i], memory) && interface.regions[i].kind == cachefmt::RegionKind::weights)
                return fail(ErrorCode::invalid_argument,
                            "the read-only state '{}' lies in the scratch '{}', whose contents are undefined: list as "
                            "scratch only what the graph writes before it reads it",
                            interface.regions[i].name, name);
        }
    for (const auto& [name, memory] : m_first.scratch)
        for (const auto& [constant, its] : m_constants.all())
            if (overlap(its, memory))
                return fail(ErrorCode::invalid_argument,
                            "the constant '{}' lies in the scratch '{}', whose contents are undefined: "
                            "list as scratch only what the graph writes before it reads it",
                            constant, name);
    // If the second capture comes from another process, only its addresses are known here, and they are compared later.
    const bool is_here = second != nullptr && m_options.stored == nullptr;
    return is_here ? check_capture(m_target, m_frame, *second, "second") : Result<void>{};
}

} // namespace warmgraph
