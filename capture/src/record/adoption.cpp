#include "warmgraph/capture/adoption.hpp"

#include <algorithm>

#include "classify/classify_semaphores.hpp"
#include "classify/region_map.hpp"
#include "classify/scratch_order.hpp"
#include "record/adoption_session.hpp"
#include "record/pairing.hpp"
#include "record/refusal_dump.hpp"
#include "verify/module_state.hpp"
#include "verify/trial_conditions.hpp"
#include "warmgraph/backends/node_places.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph {

// --- the captured graph

Result<CapturedGraph> read_capture(const CaptureTarget& target, const Frame& frame, const AdoptedCapture& capture)
{
    auto graph = target.device->recording().read_graph(capture.graph);
    if (!graph) return std::unexpected(graph.error());
    CapturedGraph result{std::move(*graph), capture.regions, capture.scratch, capture.free_blocks};
    for (std::size_t i = 0; i < result.regions.size(); ++i)
        result.regions[i].size = guards::extent_bytes(frame.tensors[i]);
    return result;
}

namespace {

/// Replaces the handle by the first capture's handle of the same name.
void rename(std::uint64_t& handle, const NamedHandles& first, const NamedHandles& second)
{
    const auto named = find_handle(second, handle);
    if (named == second.end()) return;
    const auto same = find_name(first, named->first);
    if (same != first.end()) handle = same->second;
}

/// Each capture has its own events and semaphores. Replaces the second capture's handles by the first capture's handles
/// of the same names.
void use_handles_of(const DeclaredHandles& first, const DeclaredHandles& second, backends::RawGraph& graph)
{
    const auto rename_as = [&](backends::HandleKind kind, std::uint64_t& handle) {
        const bool is_event = kind == backends::HandleKind::event;
        rename(handle, is_event ? first.events : first.semaphores, is_event ? second.events : second.semaphores);
    };
    for (auto& node : graph.nodes) backends::for_each_handle(node.work, rename_as);
}

} // namespace

std::function<std::optional<MemoryRef>(std::uint64_t)> AdoptionSession::allocation_at() const
{
    return [device = m_target.device](std::uint64_t flat) { return device->recording().allocation_at(flat); };
}

/// Returns the second capture with the handles of the first capture.
Result<CapturedGraph> AdoptionSession::second_of(const AdoptedCapture& second, Captures& captures) const
{
    const StoredCapture* const stored = m_options.stored;
    auto moved = stored != nullptr ? captured_elsewhere(*stored, m_target.interface, captures.first)
                                   : read_capture(m_target, m_frame, second);
    if (!moved) return stored != nullptr ? moved : within("the second capture", moved.error());
    if (auto known = check_semaphore_names(moved->graph, second.handles.semaphores); !known)
        return within("the second capture", known.error());
    use_handles_of(m_first.handles, second.handles, moved->graph);
    if (stored != nullptr) captures.foreign = foreign_memory(*stored, m_target.device);
    return moved;
}

Result<Classification> AdoptionSession::classified(const AdoptedCapture* second)
{
    Captures captures;
    captures.flat_addresses = true;
    captures.proof = m_options.proof;
    captures.unused = m_options.unused;
    captures.number_distance = m_options.number_distance;
    captures.allocation_at = allocation_at();
    captures.is_host_only = host_only(m_target.device);
    captures.is_handle = [device = m_target.device](std::uint64_t word) { return device->recording().is_handle(word); };
    captures.handles = m_first.handles;
    captures.scalars = m_first.scalars;
    if (second != nullptr) captures.moved_scalars = second->scalars;
    auto first = read_capture(m_target, m_frame, m_first);
    if (!first) return std::unexpected(first.error());
    captures.first = std::move(*first);
    // Check this before renaming the second capture's handles: afterwards an unnamed handle would be reported only as a
    // difference between the captures.
    if (auto known = check_semaphore_names(captures.first.graph, m_first.handles.semaphores); !known)
        return std::unexpected(known.error());
    if (auto checked = check_no_collectives(captures.first.graph); !checked) return std::unexpected(checked.error());
    auto reduced = reduced_for_trials(captures.first.graph);
    if (!reduced) return std::unexpected(reduced.error());
    m_reduced = std::move(*reduced);
    if (second != nullptr) {
        auto moved = second_of(*second, captures);
        if (!moved) return std::unexpected(moved.error());
        captures.moved = std::move(*moved);
        order_scratch(captures.first, *captures.moved);
        join_scratch(captures.first, *captures.moved);
    }
    m_pools = captures.first.scratch;
    captures.constants = m_constants.all();
    if (m_options.keeps_undeclared)
        if (auto found = m_constants.find(m_target.interface, captures, {}); !found)
            return std::unexpected(found.error());
    auto result = classify(m_target.interface, captures);
    if (!result) return fail(result.error().code, "{}{}", result.error().message, m_constants.why_not());
    if (auto checked = check_followed(result->graph); !checked) return std::unexpected(checked.error());
    m_suspects = std::move(result->suspects);
    m_neighbours = std::move(result->neighbours);
    if (!m_suspects.empty()) m_suspicious = std::move(captures.first.graph);
    return result;
}

// --- the restored graph

namespace {

/// Replaces each captured handle by the call's handle of the same name; the capture may have used other handles.
NamedHandles of_the_call(NamedHandles captured, const NamedHandles& declared)
{
    for (auto& [name, handle] : captured)
        if (const auto known = find_name(declared, name); known != declared.end()) handle = known->second;
    return captured;
}

} // namespace

/// Reads the modules' variables for storing. Then runs the original, which must change neither the variables nor the
/// constants.
Result<void> AdoptionSession::judge_variables(Classification& classified, RestorationRequest& request)
{
    auto before = read_module_state(classified.modules);
    if (!before) return std::unexpected(before.error());
    const auto& vouched = m_options.frozen_variables;
    const std::size_t first_constant = request.graph.regions.size() - m_constants.all().size();
    request.state = m_constants.relocated(*before, first_constant);
    const auto constants = check_frozen(m_device, classified.modules, request.state, vouched);
    if (!constants) return std::unexpected(constants.error());
    request.header.info.library_constants = *constants;
    if (auto hidden = check_exposed(m_device, classified.modules, request.state, vouched); !hidden) return hidden;
    if (auto checked =
            check_module_state(classified.modules, request.state, m_target.interface, m_frame.memory, allocation_at());
        !checked)
        return fail(checked.error().code, "{}{}", checked.error().message, m_constants.why_not());
    if (auto ran = run_original(request); !ran) return ran;
    const auto after = read_module_state(classified.modules);
    if (!after) return std::unexpected(after.error());
    if (auto unchanged = check_unchanged(*before, *after); !unchanged) return unchanged;
    return m_constants.check_unchanged();
}

Result<RestorationRequest> AdoptionSession::request(cachefmt::EntryHeader header, Classification classified)
{
    if (auto checked = check_tables(m_target, *m_trial); !checked) return std::unexpected(checked.error());
    if (auto looked = m_constants.look_before(m_target.interface, m_frame.memory); !looked)
        return std::unexpected(looked.error());
    RestorationRequest result{m_target.device,
                              std::move(header),
                              std::move(classified.graph),
                              classified.modules,
                              {},
                              {},
                              {},
                              m_frame.scalars,
                              {of_the_call(m_first.handles.events, m_target.handles.events),
                               of_the_call(m_first.handles.semaphores, m_target.handles.semaphores)},
                              m_target.function};
    result.header.info.unproven = classified.unproven;
    if (auto judged = judge_variables(classified, result); !judged) return std::unexpected(judged.error());
    const auto halves = std::ranges::count(m_suspects, false, &SuspectHalf::is_whole);
    result.header.info.unused_words =
        static_cast<std::uint32_t>(classified.unused.size()) + static_cast<std::uint32_t>(halves);
    result.unused = std::move(classified.unused);
    result.labels.resize(result.modules.size());
    describe_declared(result.graph, m_device, m_frame, result.header.guards);
    auto contents = m_constants.read_into(result.graph);
    if (!contents) return std::unexpected(contents.error());
    // These follow the contents that were kept from scratch.
    std::ranges::move(*contents, std::back_inserter(result.constants));
    if (auto reset = m_trial->reset(1); !reset) return std::unexpected(reset.error());
    result.regions = m_trial->regions();
    return result;
}

/// The time limit of a trial is ten times the run time of the original, plus one second.
Trials AdoptionSession::trials() const
{
    constexpr std::size_t k_patience = 10;
    return {m_target.device, m_stream, m_trial, m_first.handles, k_patience * m_took + std::chrono::seconds{1},
            nullptr};
}

Result<Recording> AdoptionSession::adopt(cachefmt::EntryHeader header, const AdoptedCapture* second)
{
    const auto started = system_clock().steady();
    if (auto checked = check_arguments(second); !checked) return std::unexpected(checked.error());
    if (auto prepared = m_device.recording().prepare_recording(); !prepared) return std::unexpected(prepared.error());
    auto stream = m_device.create_stream();
    if (!stream) return std::unexpected(stream.error());
    m_stream = std::move(*stream);

    auto graph = [&] {
        const auto timer = m_phases.measure("record");
        return classified(second);
    }();
    if (!graph) return std::unexpected(graph.error());
    auto trial = TrialMemory::create(m_target.device, m_target.interface, m_frame, std::nullopt, m_neighbours);
    if (!trial) return std::unexpected(trial.error());
    m_trial = std::move(*trial);
    m_spread = std::make_unique<Spread>(m_target.device, m_target.interface, region_types(m_frame),
                                        compared_regions(*m_trial, m_frame.tensors.size()));
    auto known = request(std::move(header), std::move(*graph));
    if (!known) return std::unexpected(known.error());

    const auto timer = m_phases.measure("verify");
    Trials replays = trials();
    const auto verify = [&](replay::Executable& executable) -> Result<void> {
        auto accepted = replays.accept_all(executable, m_frame.scalars, *m_spread, TrialMemory::Outputs::disturbed);
        if (auto intact = replays.check_caller_memory(); !intact) return intact;
        return accepted ? m_constants.check_restored(executable) : accepted;
    };
    auto recording = restore_verified(*known, m_module_cache, {verify, [&] { return replays.is_abandoned(); }});
    if (!recording) return recording;
    recording->entry.header.info.verification = verification_text(*m_spread, recording->entry.graph);
    if (!m_agreement.empty()) recording->entry.header.info.verification += ", the answer " + m_agreement;
    recording->entry.header.info.record_ms = Milliseconds{system_clock().steady() - started}.count();
    if (!m_options.compare) return recording;
    const HoldToAnswer hold = [&](std::unique_ptr<replay::Executable> executable) {
        auto held = verify(*executable);
        // NOLINTNEXTLINE(bugprone-unused-return-value): its work never ends
        if (replays.is_abandoned()) static_cast<void>(executable.release());
        return held;
    };
    if (auto compared = m_options.compare(recording->entry, hold); !compared) return std::unexpected(compared.error());
    return recording;
}

Result<Recording> adopt(const CaptureTarget& target, const Frame& frame, cachefmt::EntryHeader header,
                        const AdoptedCapture& first, const AdoptedCapture* second, const AdoptOptions& options,
                        replay::ModuleCache& modules, Phases& phases)
{
    AdoptionSession session{target, frame, first, options, modules, phases};
    AdoptedCapture elsewhere; // stays empty: its graph and regions come from options.stored
    if (options.stored != nullptr) {
        elsewhere.scalars = options.stored->scalars;
        elsewhere.handles = options.stored->handles;
    }
    auto recording = session.adopt(std::move(header), options.stored != nullptr ? &elsewhere : second);
    if (!recording) dump_refusal(target, frame, first, second, recording.error());
    return recording;
}

Result<StoredCapture> capture_for_others(const CaptureTarget& target, const Frame& frame, cachefmt::EntryKey key,
                                         const AdoptedCapture& capture)
{
    if (!target.device->limits().flat_addresses)
        return fail(ErrorCode::unsupported, "{} cannot adopt graphs", target.device->id());
    if (auto checked = check_capture(target, frame, capture, "first"); !checked)
        return std::unexpected(checked.error());
    if (auto prepared = target.device->recording().prepare_recording(); !prepared)
        return std::unexpected(prepared.error());
    auto captured = read_capture(target, frame, capture);
    if (!captured) return std::unexpected(captured.error());
    if (auto known = check_semaphore_names(captured->graph, capture.handles.semaphores); !known)
        return std::unexpected(known.error());
    if (auto checked = check_no_collectives(captured->graph); !checked) return std::unexpected(checked.error());
    auto stored = stored_capture(target.device, target.interface, std::move(key), std::move(*captured));
    if (!stored) return stored;
    stored->process = process_name();
    stored->scalars = capture.scalars;
    stored->handles = capture.handles;
    return stored;
}

} // namespace warmgraph
