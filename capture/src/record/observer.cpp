#include "record/observer.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "classify/check_captures.hpp"
#include "classify/classify_scalars.hpp"
#include "classify/region_map.hpp"
#include "classify/structural_difference.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

namespace {

// Shuffle::shift of each attempt, in bytes.
constexpr std::array<std::uint64_t, 4> k_shifts{4ULL << 10, 32ULL << 10, 256ULL << 10, 2ULL << 20};

} // namespace

/// Addresses for one capture, without memory behind them.
struct Observer::FreshAddresses {
    explicit FreshAddresses(const std::shared_ptr<backends::Device>& device)
        : shadows(*device), scratch(device, ScratchPool::Kind::shadow)
    {
    }
    ShadowSet shadows;
    ScratchPool scratch;
};

Observer::Observer(const CaptureTarget& target, const Frame& frame, TrialMemory& memory, ScratchPool& scratch,
                   const std::shared_ptr<backends::Stream>& stream, RunContext& context, UnusedWords unused)
    : m_target(target),
      m_frame(frame),
      m_memory(memory),
      m_scratch(scratch),
      m_stream(stream),
      m_context(context),
      m_unused(unused)
{
}
Observer::~Observer() = default;

// --- captures

Result<CapturedGraph> Observer::run_captured(const std::vector<MemoryRef>& regions, ScratchPool& scratch,
                                             const std::vector<std::uint64_t>& scalars, const StackState& stack)
{
    std::optional<Result<CapturedGraph>> result;
    m_stack.run(stack, [&] {
        auto graph =
            captured_run(m_target, {m_frame.tensors, regions, scalars, m_frame.values}, scratch, m_stream, m_context);
        if (graph)
            result = CapturedGraph{std::move(*graph), regions, scratch.regions()};
        else
            result = std::unexpected(graph.error());
    });
    return std::move(*result);
}

/// Captures on the memory of the present placement. The callable may read page-locked host memory, which has the
/// contents from the time of the call.
Result<CapturedGraph> Observer::capture_here(const std::vector<std::uint64_t>& scalars, const StackState& stack)
{
    auto captured = run_captured(m_memory.regions(), m_scratch, scalars, stack);
    if (!captured) return captured;
    if (auto unwritten = m_memory.check_host_regions(); !unwritten) return std::unexpected(unwritten.error());
    return captured;
}

Result<backends::RawGraph> Observer::capture_at(const std::vector<std::uint64_t>& scalars)
{
    if (auto reset = m_memory.reset(0, TrialMemory::Outputs::as_they_were); !reset)
        return std::unexpected(reset.error());
    // No kernel may run with paint in it, so the stack is painted only once it is known which bytes hold paint.
    auto captured = capture_here(scalars, {StackDepth::usual, m_unwritten ? Paint::one : Paint::none});
    if (!captured) return std::unexpected(captured.error());
    if (m_unwritten) clear(captured->graph, *m_unwritten);
    return std::move(captured->graph);
}

Result<CapturedGraph> Observer::capture_in(FreshAddresses& at, const StackState& stack)
{
    if (auto given = at.shadows.give_other_contents(m_memory.regions(), m_frame); !given)
        return std::unexpected(given.error());
    auto captured = run_captured(at.shadows.regions(), at.scratch, m_frame.scalars, stack);
    if (!captured) return captured;
    if (auto unwritten = at.shadows.check_host_regions(m_target.interface); !unwritten)
        return std::unexpected(unwritten.error());
    return captured;
}

Result<CapturedGraph> Observer::capture_elsewhere(const Shuffle& shuffle, ShadowGrouping grouping,
                                                  const Captures& captures)
{
    FreshAddresses& place = m_places.emplace_back(m_target.device);
    if (auto reserved = place.shadows.reserve(m_frame, shuffle, grouping); !reserved)
        return std::unexpected(reserved.error());
    if (captures.flat_addresses)
        if (auto mirrored = place.scratch.mirror(m_scratch, shuffle, m_frame.tensors.size()); !mirrored)
            return std::unexpected(mirrored.error());
    return capture_in(place);
}

/// Captures with every region moved by a different distance: on a device with flat addresses the distance that a word
/// moved shows its region.
Result<void> Observer::capture_moved(Captures& captures, ShadowGrouping grouping)
{
    const bool is_flat = captures.flat_addresses;
    for (const std::uint64_t shift : k_shifts) {
        auto moved = capture_elsewhere({is_flat ? shift : 0}, grouping, captures);
        if (!moved) return std::unexpected(moved.error());
        captures.moved = std::move(*moved);
        const bool comparable = captures.moved->scratch.size() == captures.first.scratch.size() &&
                                captures.moved->graph.allocations.size() == captures.first.graph.allocations.size();
        if (!is_flat || !comparable) return {}; // classify() names the difference
        if (!indistinct_movement(m_target.interface, captures)) return {};
    }
    const auto same = indistinct_movement(m_target.interface, captures);
    return fail(ErrorCode::not_recordable,
                "the driver gave '{}' and '{}' addresses at the same distance from their first addresses in each of {} "
                "attempts, so captures cannot distinguish them: record again",
                same->first, same->second, k_shifts.size());
}

/// Whether the function enqueues other work if overlapping tensors lie apart, begin together, or lie a small step
/// apart.
Result<bool> Observer::asks_how_tensors_lie(const Captures& captures)
{
    if (structural_difference(captures.first.graph, captures.moved->graph)) return true;
    for (const ShadowGrouping grouping : {ShadowGrouping::groups_equal, ShadowGrouping::groups_steps}) {
        auto other = capture_elsewhere({}, grouping, captures);
        if (!other) return std::unexpected(other.error());
        if (structural_difference(captures.first.graph, other->graph)) return true;
    }
    return false;
}

Result<void> Observer::capture_where_tensors_overlap(Captures& captures)
{
    const auto groups = guards::alias_groups(m_frame.tensors);
    if (std::set(groups.begin(), groups.end()).size() == groups.size()) return {}; // no tensor overlaps another one
    auto asks = asks_how_tensors_lie(captures);
    if (!asks) return std::unexpected(asks.error());
    if (!*asks) return {};
    captures.groups = groups;
    return capture_moved(captures, ShadowGrouping::groups);
}

/// Sets Captures::other_memory_at. It knows the heap of device code's malloc and, on devices that can read ordinary
/// host memory, that memory too.
Result<void> Observer::know_other_memory(Captures& captures) const
{
    if (!captures.flat_addresses) return {};
    auto heap = m_target.device->recording().device_heap();
    if (!heap) return std::unexpected(heap.error());
    captures.other_memory_at = [device = m_target.device, heap = *heap,
                                mappings = HostMappings::read()](std::uint64_t word) -> std::optional<std::string> {
        if (heap && word - heap->address.flat() < heap->size) return "the heap of malloc in device code";
        const auto mapping = device->recording().host_memory_at(word, mappings);
        return mapping ? std::optional{fmt::format("host memory ({})", *mapping)} : std::nullopt;
    };
    return {};
}

Result<Captures> Observer::capture_all()
{
    Captures captures;
    captures.scalars = m_frame.scalars;
    captures.handles = m_target.handles;
    captures.others = m_target.others;
    captures.constants = named(m_target.interface.constants);
    captures.flat_addresses = m_target.device->limits().flat_addresses;
    captures.allocation_at = allocations();
    if (auto known = know_other_memory(captures); !known) return std::unexpected(known.error());
    if (captures.flat_addresses)
        captures.is_handle = [device = m_target.device](std::uint64_t word) {
            return device->recording().is_handle(word);
        };

    if (auto reset = m_memory.reset(0, TrialMemory::Outputs::as_they_were); !reset)
        return std::unexpected(reset.error());
    auto first = capture_here(m_frame.scalars);
    if (!first) return std::unexpected(first.error());
    captures.first = std::move(*first);
    auto again = capture_here(m_frame.scalars, {StackDepth::deeper, Paint::other});
    if (!again) return std::unexpected(again.error());
    captures.again = std::move(*again);
    m_movement = m_stack.movement();
    if (!are_the_same(captures) && !structural_difference(captures.first.graph, captures.again->graph)) {
        // A library's first capture may leave other bytes on the stack than later captures. If the function enqueues
        // other work each time, capturing again does not help.
        first = capture_here(m_frame.scalars);
        if (!first) return std::unexpected(first.error());
        captures.first = std::move(*first);
    }
    m_capture = captures.first.graph;
    if (auto moved = capture_moved(captures, ShadowGrouping::tensors); !moved) return std::unexpected(moved.error());
    if (auto done = capture_where_tensors_overlap(captures); !done) return std::unexpected(done.error());
    return captures;
}

/// Whether the first two captures are equal apart from stack remains.
bool Observer::are_the_same(Captures captures) const
{
    const auto unwritten = m_stack.was_painted() ? unwritten_bytes(captures) : std::vector<UnwrittenByte>{};
    for (CapturedGraph* capture : all_of(captures)) clear(capture->graph, unwritten);
    erase_host_addresses(captures, m_movement);
    return captures.first.graph == with_allocations_of(captures.first.graph, std::move(captures.again->graph));
}

void Observer::clear_unwritten(Captures& captures) const
{
    for (CapturedGraph* capture : all_of(captures)) clear(capture->graph, *m_unwritten);
}

/// Returns the captures without host stack addresses; nullopt if the first two captures then still differ.
std::optional<Captures> Observer::without_host_addresses(const Captures& captures) const
{
    Captures erased = captures;
    const std::size_t words = erase_host_addresses(erased, m_movement);
    if (erased.first.graph != with_allocations_of(erased.first.graph, erased.again->graph)) return std::nullopt;
    if (words > 0)
        log().debug("{}: {} words of parameters are host stack addresses (uninitialised padding), recorded as zeros",
                    m_target.name, words);
    return erased;
}

Result<Captures> Observer::without_stack_remains(Captures captures)
{
    m_unwritten = m_stack.was_painted() ? unwritten_bytes(captures) : std::vector<UnwrittenByte>{};
    clear_unwritten(captures);
    auto erased = without_host_addresses(captures);
    return erased ? std::move(*erased) : capture_until_repeated(std::move(captures));
}

/// The second capture may contain a library's one-time work, so captures it again. Bits beside a bit-field may hold
/// paint; captures with the other paint show which bits. Other padding may vary with the stack's depth. Padding that is
/// constant at one depth is accepted; check_captures() refuses the differences that remain.
Result<Captures> Observer::capture_until_repeated(Captures captures)
{
    std::vector<CapturedGraph> repeated;
    for (const StackState& stack :
         {StackState{}, StackState{StackDepth::deeper, Paint::one}, StackState{StackDepth::deeper, Paint::other}}) {
        auto capture = capture_here(m_frame.scalars, stack);
        if (!capture) return std::unexpected(capture.error());
        clear(capture->graph, *m_unwritten);
        repeated.push_back(std::move(*capture));
    }
    captures.again = std::move(repeated[2]);
    if (m_stack.was_painted()) add(*m_unwritten, unwritten_bits(captures, std::span{repeated}.first(2)));
    captures.again = std::move(repeated[1]);
    clear_unwritten(captures);
    auto erased = without_host_addresses(captures);
    captures.again = std::move(repeated[0]);
    clear_unwritten(captures);
    const bool is_steady = captures.first.graph == with_allocations_of(captures.first.graph, captures.again->graph);
    return erased && is_steady ? std::move(*erased) : std::move(captures);
}

Result<void> Observer::check_unwritten() const
{
    // A graph with these bytes cleared must be built anew, and a graph that is built anew cannot have allocations of
    // its own.
    if (!m_unwritten->empty() && !m_capture.allocations.empty())
        return fail(ErrorCode::not_recordable,
                    "it allocates {} bytes in the graph, and takes {} uninitialised words of parameters: it can be "
                    "verified only without one of the two; take scratch from outside the graph (Recorder::alloc), or "
                    "initialise the structs",
                    m_capture.allocations.front().memory.size, count_words(*m_unwritten));
    if (m_unwritten->empty() || m_unused == UnusedWords::tried) return {};
    const UnwrittenByte& byte = m_unwritten->front();
    return fail(ErrorCode::not_recordable,
                "{} takes uninitialised memory at parameter {} byte {} (the stack's contents; {} such words in all), "
                "and Spec::strict refuses that: initialise the whole struct, or record without strict, which stores "
                "these words as zeros",
                describe_node(m_capture, byte.node), byte.param, byte.offset, count_words(*m_unwritten));
}

// --- scalars

/// Checks the repeated capture before thousands of probes: a difference between equal captures has nothing to do with
/// scalars, and can be reported at once.
Result<void> Observer::check_repeated(const Captures& captures)
{
    const auto judged = without_stack_remains(captures);
    return judged ? check_captures(m_target.interface, *judged) : std::unexpected(judged.error());
}

Result<std::size_t> Observer::probe_scalar(Captures& captures, std::size_t scalar,
                                           const std::vector<std::uint64_t>& values, std::size_t least,
                                           std::chrono::steady_clock::time_point deadline)
{
    const auto& decl = m_target.interface.scalars[scalar];
    ProbeJudge judge{m_target.interface, captures};
    std::size_t probed = 0;
    for (; probed < values.size(); ++probed) {
        if (probed >= least && system_clock().steady() >= deadline) break;
        auto scalars = m_frame.scalars;
        scalars[scalar] = values[probed];
        auto capture = capture_here(scalars);
        if (!capture)
            return within(fmt::format("with scalar '{}' = {} (if not every value is allowed, declare its range)",
                                      decl.name, number_text(decl.dtype, values[probed])),
                          capture.error());
        capture->graph = with_allocations_of(captures.first.graph, std::move(capture->graph));
        ScalarProbe probe{scalar, values[probed], std::move(*capture)};
        if (auto judged = judge.judge(probe); !judged) return std::unexpected(judged.error());
        if (probed == 0) captures.probes.push_back(std::move(probe));
    }
    return probed;
}

Result<std::vector<std::string>> Observer::probe(Captures& captures, std::chrono::milliseconds time)
{
    const auto& interface = m_target.interface;
    std::vector<std::string> proofs;
    const auto started = system_clock().steady();
    const std::size_t count = interface.scalars.size();
    for (std::size_t s = 0; s < count; ++s) {
        const auto plan = plan_probes(interface.scalars[s].dtype, interface.ranges[s], m_frame.scalars[s]);
        const auto deadline = started + time * static_cast<std::int64_t>(s + 1) / static_cast<std::int64_t>(count);
        auto probed = probe_scalar(captures, s, plan.values, plan.least, deadline);
        if (!probed) return std::unexpected(probed.error());
        proofs.push_back(fmt::format("{}: {}", interface.scalars[s].name, proof_text(plan, *probed)));
    }
    return proofs;
}

// --- the public functions

std::function<std::optional<MemoryRef>(std::uint64_t)> Observer::allocations() const
{
    if (!m_target.device->limits().flat_addresses) return nullptr;
    return [device = m_target.device](std::uint64_t flat) { return device->recording().allocation_at(flat); };
}

Result<Observation> Observer::observe(std::chrono::milliseconds probing,
                                      const std::function<Result<void>(Captures&)>& find_more)
{
    auto captures = capture_all();
    if (!captures) return std::unexpected(captures.error());
    if (!m_target.interface.scalars.empty())
        if (auto checked = check_repeated(*captures); !checked) return std::unexpected(checked.error());
    auto proofs = probe(*captures, probing);
    if (!proofs) return std::unexpected(proofs.error());
    captures = without_stack_remains(std::move(*captures));
    if (!captures) return std::unexpected(captures.error());
    if (auto checked = check_unwritten(); !checked) return std::unexpected(checked.error());
    clear(m_capture, *m_unwritten);
    if (auto found = find_more(*captures); !found) return std::unexpected(found.error());
    auto classified = classify(m_target.interface, *captures);
    if (!classified) return std::unexpected(classified.error());
    return Observation{std::move(*classified), std::move(*proofs), std::move(captures->groups),
                       count_words(*m_unwritten)};
}

} // namespace warmgraph
