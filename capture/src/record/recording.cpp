#include "warmgraph/capture/recording.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <exception>

#include "classify/classify.hpp"
#include "classify/host_addresses.hpp"
#include "classify/region_map.hpp"
#include "verify/restoration.hpp"
#include "verify/verification.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/numbers.hpp"
#include "warmgraph/capture/shadow_set.hpp"

namespace warmgraph {

namespace {

constexpr std::array<std::uint64_t, 4> k_shifts{4ULL << 10, 32ULL << 10, 256ULL << 10, 2ULL << 20}; // bytes (Shuffle)

/// Addresses for one capture.
struct Elsewhere {
    explicit Elsewhere(const std::shared_ptr<backends::Device>& device)
        : shadows(*device), scratch(device, ScratchPool::Kind::shadow)
    {
    }
    ShadowSet shadows;
    ScratchPool scratch;
};

class RecordingSession {
public:
    RecordingSession(const Subject& subject, const Frame& frame, replay::ModuleCache& modules, Phases& phases)
        : m_subject(subject),
          m_frame(frame),
          m_module_cache(modules),
          m_phases(phases),
          m_scratch(subject.device, ScratchPool::Kind::memory),
          m_spread(subject.interface, region_types(frame))
    {
        m_context.function = subject.name;
        m_context.phases = &phases;
    }

    Result<Recording> record(cachefmt::EntryHeader header);

private:
    [[nodiscard]] Result<void> prepare();
    [[nodiscard]] Result<void> warm_up();
    [[nodiscard]] Result<Outcomes> own_run(std::size_t index, const std::vector<std::uint64_t>& scalars);
    [[nodiscard]] Result<Capture> capture(Elsewhere& at, const std::vector<std::uint64_t>& scalars,
                                          StackDepth depth = StackDepth::usual);
    [[nodiscard]] Result<Capture> capture_here(Elsewhere& at, const std::vector<std::uint64_t>& scalars);
    [[nodiscard]] Result<Captures> capture_all();
    /// `captures` with uninitialised padding erased where it can be told.
    [[nodiscard]] Result<Captures> without_host_addresses(Captures captures, const StackMovement& movement,
                                                          Elsewhere& first);
    [[nodiscard]] Result<void> capture_moved(Captures& captures, const Elsewhere& first);
    [[nodiscard]] Result<void> capture_probes(Captures& captures, Elsewhere& first);
    [[nodiscard]] Result<RestorationRequest> request(cachefmt::EntryHeader header);
    [[nodiscard]] Result<ModuleState> module_state(std::span<backends::Module* const> modules);
    [[nodiscard]] Result<void> verify(replay::Executable& executable);
    [[nodiscard]] Result<void> verify_at_other_scalars(replay::Executable& executable);

    const Subject& m_subject;
    const Frame& m_frame;
    replay::ModuleCache& m_module_cache;
    Phases& m_phases;
    RunContext m_context;
    std::shared_ptr<backends::Stream> m_stream;
    std::unique_ptr<TrialMemory> m_trial;
    ScratchPool m_scratch;
    std::deque<Elsewhere> m_places; // kept until all is classified: no address may be given twice
    Spread m_spread;
    HostStack m_stack; // of the thread that records
};

// --- runs of the function itself

Result<void> RecordingSession::prepare()
{
    if (auto prepared = m_subject.device->prepare_recording(); !prepared) return prepared;
    auto stream = m_subject.device->create_stream();
    if (!stream) return std::unexpected(stream.error());
    m_stream = std::move(*stream);
    return {};
}

Result<Outcomes> RecordingSession::own_run(std::size_t index, const std::vector<std::uint64_t>& scalars)
{
    return TrialRun{m_subject, m_frame, *m_trial, m_scratch, m_stream, m_context}.run(index, scalars);
}

Result<void> RecordingSession::warm_up()
{
    const Milliseconds compiled_before = m_phases.get("compile");
    const auto started = system_clock().steady();
    auto trial = TrialMemory::create(m_subject.device, m_subject.interface, m_frame);
    if (!trial) return std::unexpected(trial.error());
    m_trial = std::move(*trial);
    auto learned = learn_spread(m_spread, [this](std::size_t i) { return own_run(i, m_frame.scalars); });
    if (learned) learned = m_trial->check_in_place();
    m_phases.add("warm up", system_clock().steady() - started - (m_phases.get("compile") - compiled_before));
    return learned;
}

// --- captures

Result<Capture> RecordingSession::capture(Elsewhere& at, const std::vector<std::uint64_t>& scalars, StackDepth depth)
{
    std::optional<Result<Capture>> result;
    m_stack.run(depth, [&] { result = capture_here(at, scalars); });
    return std::move(*result);
}

Result<Capture> RecordingSession::capture_here(Elsewhere& at, const std::vector<std::uint64_t>& scalars)
{
    const RunInputs inputs{m_frame.tensors, at.shadows.regions(), scalars, m_frame.values};
    auto graph = captured_run(m_subject, inputs, at.scratch, m_stream, m_context);
    if (!graph) return std::unexpected(graph.error());
    return Capture{std::move(*graph), at.shadows.regions(), at.scratch.regions()};
}

/// Every region elsewhere, and each by a distance of its own: on a device with flat addresses a word is explained by how
/// far it moved.
Result<void> RecordingSession::capture_moved(Captures& captures, const Elsewhere& first)
{
    const bool is_flat = captures.flat_addresses;
    for (const std::uint64_t shift : k_shifts) {
        Elsewhere& place = m_places.emplace_back(m_subject.device);
        const Shuffle shuffle{is_flat ? shift : 0};
        if (auto reserved = place.shadows.reserve(m_frame, shuffle); !reserved) return reserved;
        if (is_flat)
            if (auto mirrored = place.scratch.mirror(first.scratch, shuffle, m_frame.tensors.size()); !mirrored)
                return mirrored;
        auto moved = capture(place, m_frame.scalars);
        if (!moved) return std::unexpected(moved.error());
        captures.moved = std::move(*moved);
        const bool comparable = captures.moved->scratch.size() == captures.first.scratch.size() &&
                                captures.moved->graph.allocations.size() == captures.first.graph.allocations.size();
        if (!is_flat || !comparable) return {}; // classify() names what differs
        if (!indistinct_movement(m_subject.interface, captures)) return {};
    }
    const auto same = indistinct_movement(m_subject.interface, captures);
    return fail(ErrorCode::not_recordable,
                "the driver gave '{}' and '{}' addresses at the same distance from their first ones in each of {} "
                "attempts, so that captures cannot tell them apart: record again",
                same->first, same->second, k_shifts.size());
}

Result<void> RecordingSession::capture_probes(Captures& captures, Elsewhere& first)
{
    const auto& interface = m_subject.interface;
    for (std::size_t s = 0; s < interface.scalars.size(); ++s) {
        for (const std::uint64_t bits :
             probe_values(interface.scalars[s].dtype, interface.ranges[s], m_frame.scalars[s])) {
            auto scalars = m_frame.scalars;
            scalars[s] = bits;
            auto probe = capture(first, scalars);
            if (!probe)
                return within(fmt::format("with scalar '{}' = {} (declare its range where not every value is allowed)",
                                          interface.scalars[s].name, number_text(interface.scalars[s].dtype, bits)),
                              probe.error());
            captures.probes.push_back({s, bits, std::move(*probe)});
        }
    }
    return {};
}

Result<Captures> RecordingSession::capture_all()
{
    Captures captures;
    captures.scalars = m_frame.scalars;
    captures.handles = m_subject.handles;
    captures.flat_addresses = m_subject.device->limits().flat_addresses;
    if (captures.flat_addresses) {
        captures.allocation_at = [device = m_subject.device](std::uint64_t flat) {
            return device->allocation_at(flat);
        };
        captures.is_handle = [device = m_subject.device](std::uint64_t word) { return device->is_handle(word); };
    }

    Elsewhere& first = m_places.emplace_back(m_subject.device);
    if (auto reserved = first.shadows.reserve(m_frame, {}); !reserved) return std::unexpected(reserved.error());
    auto captured = capture(first, m_frame.scalars);
    if (!captured) return std::unexpected(captured.error());
    captures.first = std::move(*captured);
    auto again = capture(first, m_frame.scalars, StackDepth::deeper);
    if (!again) return std::unexpected(again.error());
    captures.again = std::move(*again);
    const StackMovement movement = m_stack.movement();
    if (auto moved = capture_moved(captures, first); !moved) return std::unexpected(moved.error());
    if (auto probed = capture_probes(captures, first); !probed) return std::unexpected(probed.error());
    return without_host_addresses(std::move(captures), movement, first);
}

Result<Captures> RecordingSession::without_host_addresses(Captures captures, const StackMovement& movement,
                                                          Elsewhere& first)
{
    Captures erased = captures;
    const std::size_t words = erase_host_addresses(erased, movement);
    if (erased.first.graph == erased.again->graph) {
        if (words > 0)
            log().debug(
                "{}: {} words of parameters are host stack addresses (uninitialised padding), recorded as zeros",
                m_subject.name, words);
        return erased;
    }
    // Padding of a shape that cannot be told moves with the stack's depth as well. At one depth it is as constant as all
    // else, and no reason to refuse; what is not constant there either is.
    auto again = capture(first, m_frame.scalars);
    if (!again) return std::unexpected(again.error());
    captures.again = std::move(*again);
    return captures;
}

/// After the warm-up; captures run nothing. Only when something differs from the images is another run worth while, which
/// tells whether the work itself keeps state there.
Result<ModuleState> RecordingSession::module_state(std::span<backends::Module* const> modules)
{
    auto state = read_module_state(modules);
    if (!state) return state;
    if (std::ranges::all_of(*state, [](const auto& variables) { return variables.empty(); })) return state;
    const auto& device = m_subject.device;
    std::function<std::optional<MemoryRef>(std::uint64_t)> allocation_at;
    if (device->limits().flat_addresses)
        allocation_at = [&device](std::uint64_t flat) { return device->allocation_at(flat); };
    if (auto checked = check_module_state(modules, *state, m_subject.interface, m_frame.memory, allocation_at);
        !checked)
        return std::unexpected(checked.error());
    if (auto ran = own_run(0, m_frame.scalars); !ran) return std::unexpected(ran.error());
    auto after = read_module_state(modules);
    if (!after) return after;
    if (auto unchanged = check_unchanged(*state, *after); !unchanged) return std::unexpected(unchanged.error());
    return state;
}

Result<RestorationRequest> RecordingSession::request(cachefmt::EntryHeader header)
{
    auto captures = capture_all();
    if (!captures) return std::unexpected(captures.error());
    auto classified = classify(m_subject.interface, *captures);
    if (!classified) return std::unexpected(classified.error());
    auto state = module_state(classified->modules);
    if (!state) return std::unexpected(state.error());

    RestorationRequest result{m_subject.device,
                              std::move(header),
                              std::move(classified->graph),
                              std::move(classified->modules),
                              {},
                              std::move(*state),
                              {},
                              m_frame.scalars,
                              m_subject.handles,
                              m_subject.function};
    result.header.info.unproven = classified->unproven;
    describe_declared(result.graph, *m_subject.device, m_frame, result.header.guards);
    for (backends::Module* module : result.modules) {
        const auto program = m_context.modules.find(module);
        result.labels.push_back(program != m_context.modules.end() ? program->second.second : "");
    }
    if (auto reset = m_trial->reset(1); !reset) return std::unexpected(reset.error());
    result.regions = m_trial->regions();
    return result;
}

// --- verification

Result<void> RecordingSession::verify(replay::Executable& executable)
{
    TrialReplay replay{*m_subject.device, *m_stream, *m_trial, m_subject.handles};
    auto accepted = replay.accept_all(executable, m_frame.scalars, m_spread);
    if (accepted) accepted = verify_at_other_scalars(executable);
    if (auto intact = replay.check_caller_memory(); !intact) return intact;
    return accepted;
}

Result<void> RecordingSession::verify_at_other_scalars(replay::Executable& executable)
{
    auto scalars = m_frame.scalars;
    bool differ = false;
    for (std::size_t s = 0; s < scalars.size(); ++s) {
        const auto& scalar = m_subject.interface.scalars[s];
        if (!scalar.range) continue; // an undeclared range promises nothing about what may be run
        // Its neighbours in the range are nobody's objects: a kernel that is given one crashes, and the context with it.
        if (scalar.dtype == DType::u64 && m_subject.device->is_handle(scalars[s])) continue;
        const auto probes = probe_values(scalar.dtype, m_subject.interface.ranges[s], scalars[s]);
        if (probes.empty()) continue;
        scalars[s] = probes[probes.size() / 2];
        differ = true;
    }
    if (!differ) return {};
    Spread spread{m_subject.interface, region_types(m_frame)};
    const std::size_t runs = m_spread.is_bitwise() ? 1 : k_runs_when_they_differ;
    for (std::size_t i = 0; i < runs; ++i) {
        auto own = own_run(i, scalars);
        if (!own) return std::unexpected(own.error());
        spread.add(std::move(*own));
    }
    if (auto measured = spread.measure(); !measured) return measured;
    TrialReplay replay{*m_subject.device, *m_stream, *m_trial, m_subject.handles};
    auto outcomes = replay.run(executable, 1, scalars);
    if (!outcomes) return std::unexpected(outcomes.error());
    return spread.accept(*outcomes);
}

Result<Recording> RecordingSession::record(cachefmt::EntryHeader header)
{
    const auto started = system_clock().steady();
    if (auto prepared = prepare(); !prepared) return std::unexpected(prepared.error());
    if (auto warmed = warm_up(); !warmed) return std::unexpected(warmed.error());
    Result<RestorationRequest> known = std::unexpected(Error{ErrorCode::internal, ""});
    {
        const auto timer = m_phases.measure("record");
        known = request(std::move(header));
        m_places.clear();
        if (!known) return std::unexpected(known.error());
    }
    const auto timer = m_phases.measure("verify");
    auto recording =
        restore_verified(*known, m_module_cache, [this](replay::Executable& executable) { return verify(executable); });
    if (!recording) return recording;
    recording->entry.header.info.verification = verification_text(m_spread, recording->entry.graph);
    recording->entry.header.info.record_ms = Milliseconds{system_clock().steady() - started}.count();
    return recording;
}

} // namespace

Result<Recording> record(const Subject& subject, const Frame& frame, cachefmt::EntryHeader header,
                         replay::ModuleCache& modules, Phases& phases)
{
    return RecordingSession{subject, frame, modules, phases}.record(std::move(header));
}

} // namespace warmgraph
