#include "warmgraph/capture/adoption.hpp"

#include <algorithm>

#include "classify/classify.hpp"
#include "classify/classify_semaphores.hpp"
#include "classify/region_map.hpp"
#include "model/memory_ranges.hpp"
#include "verify/constants.hpp"
#include "verify/decoys.hpp"
#include "verify/module_state.hpp"
#include "verify/restoration.hpp"
#include "verify/scratch_contents.hpp"
#include "verify/trial_conditions.hpp"
#include "verify/trials.hpp"
#include "warmgraph/backends/places.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph {

namespace {

constexpr std::size_t k_original_runs = 3; // more where results differ

class AdoptionSession {
public:
    AdoptionSession(const Subject& subject, const Frame& frame, const AdoptedCapture& first,
                    const AdoptOptions& options, replay::ModuleCache& modules, Phases& phases)
        : m_subject(subject),
          m_device(*subject.device),
          m_frame(frame),
          m_first(first),
          m_options(options),
          m_constants(subject.device, named(subject.interface.constants), options.most_constant_bytes),
          m_module_cache(modules),
          m_phases(phases)
    {
    }
    Result<Recording> adopt(cachefmt::EntryHeader header, const AdoptedCapture* second);

private:
    [[nodiscard]] Result<void> check_arguments(const AdoptedCapture* second) const;
    [[nodiscard]] Result<void> check_scalars(const AdoptedCapture* second) const;
    [[nodiscard]] Result<void> check_followed(const cachefmt::Graph& graph) const;
    [[nodiscard]] Result<void> check_capture(const AdoptedCapture& capture, std::string_view which) const;
    [[nodiscard]] Result<Capture> read(const AdoptedCapture& capture) const;
    [[nodiscard]] Result<Classified> classified(const AdoptedCapture* second);
    [[nodiscard]] Result<void> judge_variables(Classified& classified, RestorationRequest& request);
    [[nodiscard]] Result<void> original_run(backends::GraphExec& exec);
    [[nodiscard]] Result<void> run_original(RestorationRequest& request);
    [[nodiscard]] Result<void> run_original_within(ScratchContents& scratch, RestorationRequest& request);
    [[nodiscard]] Result<void> judge_scratch(ScratchContents& scratch, backends::GraphExec& exec,
                                             RestorationRequest& request);
    [[nodiscard]] Result<void> judge_suspects(ScratchContents& scratch, RestorationRequest& request);
    [[nodiscard]] Result<void> keep_contents(const ScratchContents& scratch,
                                             std::span<const ScratchContents::Range> ranges,
                                             RestorationRequest& request);
    [[nodiscard]] Result<RestorationRequest> request(cachefmt::EntryHeader header, Classified classified);
    [[nodiscard]] std::function<std::optional<MemoryRef>(std::uint64_t)> allocation_at() const;
    [[nodiscard]] Trials trials() const;

    const Subject& m_subject;
    backends::Device& m_device;
    const Frame& m_frame;
    const AdoptedCapture& m_first;
    const AdoptOptions& m_options;
    Constants m_constants;
    replay::ModuleCache& m_module_cache;
    Phases& m_phases;
    std::shared_ptr<backends::Stream> m_stream;
    std::shared_ptr<TrialMemory> m_trial;
    std::unique_ptr<Spread> m_spread;
    std::vector<NamedMemory> m_pools; ///< the first capture's scratch; what lies side by side is one
    std::vector<SuspectHalf> m_suspects;
    backends::RawGraph m_suspicious;             ///< the first capture, where there are suspects
    std::optional<backends::RawGraph> m_reduced; ///< of an original that works with the outside: it is run without that
    std::chrono::nanoseconds m_took{0};          ///< the slowest run of the original
};

// --- arguments

Result<void> AdoptionSession::check_capture(const AdoptedCapture& capture, std::string_view which) const
{
    const auto& regions = m_subject.interface.regions;
    if (capture.graph == nullptr) return fail(ErrorCode::invalid_argument, "the {} graph is null", which);
    if (capture.regions.size() != regions.size())
        return fail(ErrorCode::invalid_argument, "the {} capture names {} regions, expected {} as declared", which,
                    capture.regions.size(), regions.size());
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const std::uint64_t extent = guards::extent_bytes(m_frame.tensors[i]);
        if (capture.regions[i].address.is_null() && extent == 0) continue;
        if (capture.regions[i].address.is_null() || capture.regions[i].size < extent)
            return fail(ErrorCode::invalid_argument, "'{}' has {} bytes in the {} capture, expected {}",
                        regions[i].name, capture.regions[i].address.is_null() ? 0 : capture.regions[i].size, which,
                        extent);
        if (capture.regions[i].address.offset % m_device.limits().memory_alignment != 0)
            return fail(ErrorCode::invalid_argument, "'{}' is misaligned in the {} capture", regions[i].name, which);
    }
    return {};
}

/// Each goes a distance of its own, so that a value of a semaphore tells which one it follows.
Result<void> AdoptionSession::check_scalars(const AdoptedCapture* second) const
{
    const auto& scalars = m_subject.interface.scalars;
    if (scalars.empty()) return {};
    if (second == nullptr)
        return fail(ErrorCode::invalid_argument,
                    "'{}' declares the scalar '{}', which one capture cannot show: give a second one where it differs, "
                    "or declare it in Spec::values and adopt a graph for each value",
                    m_subject.name, scalars[0].name);
    if (m_first.scalars.size() != scalars.size() || second->scalars.size() != scalars.size())
        return fail(ErrorCode::invalid_argument, "the captures give {} and {} scalars, expected {} as declared",
                    m_first.scalars.size(), second->scalars.size(), scalars.size());
    std::vector<std::uint64_t> distances;
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        const std::uint64_t mask = size_of(scalars[i].dtype) == 8 ? ~0ULL : 0xFFFF'FFFFULL;
        const std::uint64_t distance = (second->scalars[i] - m_first.scalars[i]) & mask;
        if (distance == 0 || std::ranges::find(distances, distance) != distances.end())
            return fail(ErrorCode::invalid_argument,
                        "the scalar '{}' is {} further in the second capture, {}: give it another value there",
                        scalars[i].name, distance,
                        distance == 0 ? "where it must differ to show what follows it" : "and so is another one");
        distances.push_back(distance);
    }
    return {};
}

/// A scalar that nothing follows would be ignored by every call.
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
                "no semaphore's value follows the scalar '{}', and nothing else can in a graph that was captured "
                "elsewhere: declare it in Spec::values and adopt a graph for each value",
                graph.scalars[static_cast<std::size_t>(unused - followed.begin())].name);
}

Result<void> AdoptionSession::check_arguments(const AdoptedCapture* second) const
{
    const auto& interface = m_subject.interface;
    if (!m_device.limits().flat_addresses) return fail(ErrorCode::unsupported, "{} cannot adopt graphs", m_device.id());
    if (auto checked = check_scalars(second); !checked) return checked;
    if (auto checked = check_capture(m_first, "first"); !checked) return checked;
    if (auto checked = check_no_managed(m_subject, m_frame.memory); !checked) return checked;
    for (std::size_t i = 0; i < interface.regions.size(); ++i)
        if (m_first.regions[i].address != m_frame.memory[i].address)
            return fail(ErrorCode::invalid_argument,
                        "'{}' is at {:#x} in the call and was at {:#x} in the first capture: give the memory that was "
                        "captured, with valid contents",
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
    return second != nullptr ? check_capture(*second, "second") : Result<void>{};
}

// --- the graph

Result<Capture> AdoptionSession::read(const AdoptedCapture& capture) const
{
    auto graph = m_device.read_graph(capture.graph);
    if (!graph) return std::unexpected(graph.error());
    Capture result{std::move(*graph), capture.regions, capture.scratch, capture.free_blocks};
    for (std::size_t i = 0; i < result.regions.size(); ++i)
        result.regions[i].size = guards::extent_bytes(m_frame.tensors[i]);
    return result;
}

/// The first capture's handle of the same name.
void rename(std::uint64_t& handle, const NamedHandles& first, const NamedHandles& second)
{
    const auto named = std::ranges::find(second, handle, [](const auto& one) { return one.second; });
    if (named == second.end()) return;
    const auto same = std::ranges::find(first, named->first, [](const auto& one) { return one.first; });
    if (same != first.end()) handle = same->second;
}

/// Every capture has events and semaphores of its own: the second one's, by name, as if they were the first one's.
void use_handles_of(const DeclaredHandles& first, const DeclaredHandles& second, backends::RawGraph& graph)
{
    const auto rename_as = [&](backends::HandleKind kind, std::uint64_t& handle) {
        const bool is_event = kind == backends::HandleKind::event;
        rename(handle, is_event ? first.events : first.semaphores, is_event ? second.events : second.semaphores);
    };
    for (auto& node : graph.nodes) backends::for_each_handle(node.work, rename_as);
}

std::function<std::optional<MemoryRef>(std::uint64_t)> AdoptionSession::allocation_at() const
{
    return [device = m_subject.device](std::uint64_t flat) { return device->allocation_at(flat); };
}

Result<Classified> AdoptionSession::classified(const AdoptedCapture* second)
{
    Captures captures;
    captures.flat_addresses = true;
    captures.proof = m_options.proof;
    captures.unused = m_options.unused;
    captures.allocation_at = allocation_at();
    captures.is_host_only = [device = m_subject.device, mappings = HostMappings::read()](std::uint64_t word) {
        const auto name = mappings.at(word);
        const bool is_ordinary = name && !name->starts_with("/dev/"); // the driver's have such names
        return is_ordinary && !device->allocation_at(word) && !device->host_memory_at(word, mappings);
    };
    captures.is_handle = [device = m_subject.device](std::uint64_t word) { return device->is_handle(word); };
    captures.handles = m_first.handles;
    captures.scalars = m_first.scalars;
    if (second != nullptr) captures.moved_scalars = second->scalars;
    auto first = read(m_first);
    if (!first) return std::unexpected(first.error());
    captures.first = std::move(*first);
    // By handle, before the second capture's become the first one's by name: what has no name would only differ.
    if (auto known = check_semaphore_names(captures.first.graph, m_first.handles.semaphores); !known)
        return std::unexpected(known.error());
    if (auto checked = check_no_collectives(captures.first.graph); !checked) return std::unexpected(checked.error());
    auto reduced = reduced_for_trials(captures.first.graph);
    if (!reduced) return std::unexpected(reduced.error());
    m_reduced = std::move(*reduced);
    if (second != nullptr) {
        auto moved = read(*second);
        if (!moved) return within("the second capture", moved.error());
        if (auto known = check_semaphore_names(moved->graph, second->handles.semaphores); !known)
            return within("the second capture", known.error());
        use_handles_of(m_first.handles, second->handles, moved->graph);
        captures.moved = std::move(*moved);
        join_scratch(captures.first, *captures.moved);
    }
    m_pools = captures.first.scratch;
    captures.constants = m_constants.all();
    if (m_options.keeps_undeclared)
        if (auto found = m_constants.find(m_subject.interface, captures, {}); !found)
            return std::unexpected(found.error());
    auto result = classify(m_subject.interface, captures);
    if (!result) return fail(result.error().code, "{}{}", result.error().message, m_constants.why_not());
    if (auto checked = check_followed(result->graph); !checked) return std::unexpected(checked.error());
    m_suspects = std::move(result->suspects);
    if (!m_suspects.empty()) m_suspicious = std::move(captures.first.graph);
    return result;
}

// --- the original's own results

/// On the caller's memory, where alone it can run: from the same contents each time. What scratch holds is there already: a declared
/// region may lie inside a pool, and is filled after it.
Result<void> AdoptionSession::original_run(backends::GraphExec& exec)
{
    if (auto reset = m_trial->reset_original(); !reset) return reset;
    const auto started = system_clock().steady();
    auto launched = exec.launch(*m_stream);
    if (auto done = m_stream->synchronize(); !done && launched) return done;
    if (!launched) return within("run the original graph", launched.error());
    m_took = std::max(m_took, std::chrono::nanoseconds{system_clock().steady() - started});
    return {};
}

/// What the graph reads of scratch before it writes it becomes part of the entry, where the caller allows that.
Result<void> AdoptionSession::keep_contents(const ScratchContents& scratch,
                                            std::span<const ScratchContents::Range> ranges, RestorationRequest& request)
{
    const auto& regions = request.graph.regions;
    for (const auto& range : ranges) {
        const auto refused = [&](const std::string& why) {
            return fail(ErrorCode::not_recordable,
                        "its results follow what {} held when it was captured, which it reads before it writes it{}: "
                        "declare that memory (a state, a constant), or write it in the graph",
                        scratch.text(range), why);
        };
        if (!m_options.keeps_undeclared)
            return refused(", and Undeclared::constants is off, which would keep it in the entry");
        auto unchanged = scratch.is_unchanged(range);
        if (!unchanged) return std::unexpected(unchanged.error());
        if (!*unchanged) return refused(", and it writes there later");
        if (const auto address = scratch.address_in(range))
            return refused(fmt::format(", and an address is in it, at byte {}", *address));
        auto added = m_constants.contents_of(scratch.memory(range));
        if (!added) return std::unexpected(added.error());
        if (!*added)
            return refused(fmt::format(", and more than the {} bytes that may be kept", m_options.most_constant_bytes));
        auto& [digest, contents] = **added;
        const MemoryRef at = scratch.memory(range);
        const auto pool = std::ranges::find_if(m_pools, [&](const NamedMemory& one) {
            return at.address.flat() - one.second.address.flat() < one.second.size;
        });
        const auto arena = std::ranges::find_if(regions, [&](const cachefmt::Region& region) {
            return region.kind == cachefmt::RegionKind::arena && pool != m_pools.end() && region.name == pool->first;
        });
        if (arena == regions.end()) return refused(", and no arena has it");
        const std::uint64_t offset = at.address.flat() - pool->second.address.flat();
        cachefmt::Region kept;
        kept.name = fmt::format("{} from byte {}", arena->name, offset);
        kept.kind = cachefmt::RegionKind::constant;
        kept.size = range.to - range.from;
        kept.digest = digest;
        kept.exclusive = true;
        kept.inside = static_cast<std::uint32_t>(arena - regions.begin());
        kept.inside_offset = offset;
        request.graph.regions.push_back(std::move(kept));
        request.constants.emplace_back(digest, std::move(contents));
    }
    return {};
}

Result<void> AdoptionSession::judge_scratch(ScratchContents& scratch, backends::GraphExec& exec,
                                            RestorationRequest& request)
{
    const auto accepts = [&]() -> Result<bool> {
        if (auto ran = original_run(exec); !ran) return std::unexpected(ran.error());
        auto accepted = m_spread->accept(m_trial->original());
        if (!accepted && accepted.error().code != ErrorCode::verification_failed)
            return std::unexpected(accepted.error());
        return accepted.has_value();
    };
    const auto ranges = scratch.read_before_written(accepts);
    if (!ranges) return std::unexpected(ranges.error());
    if (auto followed = scratch.check_addresses(accepts); !followed) return followed;
    if (ranges->empty()) return {};
    if (auto restored = scratch.restore(); !restored) return restored;
    if (auto ran = original_run(exec); !ran) return ran;
    return keep_contents(scratch, *ranges, request);
}

/// What no pointer needs becomes zero.
Result<void> AdoptionSession::judge_suspects(ScratchContents& scratch, RestorationRequest& request)
{
    if (m_suspects.empty()) return {};
    const std::string& why = m_suspects[0].why;
    if (m_reduced || !m_suspicious.allocations.empty())
        return fail(ErrorCode::not_recordable, "{}{}", why, m_constants.why_not());
    Decoys decoys{m_device};
    if (auto laid = decoys.lay(m_suspects, m_suspicious); !laid)
        return fail(laid.error().code, "{}{}", laid.error().message, m_constants.why_not());
    auto exec = m_device.instantiate(m_suspicious);
    if (!exec) return within("instantiate the original graph with other halves of addresses", exec.error());
    if (auto restored = scratch.restore(); !restored) return restored;
    if (auto ran = original_run(**exec); !ran) return ran;
    const auto accepted = m_spread->accept(m_trial->original());
    if (!accepted && accepted.error().code != ErrorCode::verification_failed) return accepted;
    const auto untouched = decoys.are_untouched();
    if (!untouched) return std::unexpected(untouched.error());
    if (!accepted || !*untouched) return fail(ErrorCode::not_recordable, "{}{}", why, m_constants.why_not());
    for (const SuspectHalf& suspect : m_suspects)
        set_upper_half(std::get<cachefmt::KernelNode>(request.graph.nodes[suspect.node]).params[suspect.param].value,
                       suspect, 0);
    return {};
}

/// Throws nothing: the caller's memory has to be put back.
Result<void> AdoptionSession::run_original_within(ScratchContents& scratch, RestorationRequest& request)
try {
    auto exec = m_reduced ? m_device.instantiate(*m_reduced) : m_device.instantiate_native(m_first.graph);
    if (!exec) return within("instantiate the original graph", exec.error());
    const auto run = [&]() -> Result<std::size_t> {
        if (auto restored = scratch.restore(); !restored) return std::unexpected(restored.error());
        if (auto ran = original_run(**exec); !ran) return std::unexpected(ran.error());
        return m_spread->add(m_trial->original());
    };
    if (auto learned = learn_spread(*m_spread, k_original_runs, run); !learned) return learned;
    if (auto judged = judge_scratch(scratch, **exec, request); !judged) return judged;
    if (auto judged = judge_suspects(scratch, request); !judged) return judged;
    return m_trial->check_in_place();
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory to run the original graph");
}

Result<void> AdoptionSession::run_original(RestorationRequest& request)
{
    const auto timer = m_phases.measure("original");
    ScratchContents scratch{m_device};
    if (auto saved = scratch.save(m_first.scratch, m_frame.memory); !saved) return saved;
    auto ran = run_original_within(scratch, request);
    auto put_back = scratch.put_back();
    if (auto written = m_trial->write_back(); !written && put_back) put_back = written;
    if (!put_back) // the graph's memory is the caller's, and it holds what the runs left there
        return fail(ErrorCode::partly_launched, "the caller's memory could not be put back as it was: {}",
                    put_back.error().message);
    return ran;
}

// --- the restored graph

namespace {

/// By the names of the capture, the handles that calls are to use: it may have been captured with others.
NamedHandles of_the_call(NamedHandles captured, const NamedHandles& declared)
{
    for (auto& [name, handle] : captured)
        for (const auto& [known, its_handle] : declared)
            if (known == name) handle = its_handle;
    return captured;
}

} // namespace

/// What the modules hold besides code, as it is stored; the original runs meanwhile, and must leave it and the constants alone.
Result<void> AdoptionSession::judge_variables(Classified& classified, RestorationRequest& request)
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
            check_module_state(classified.modules, request.state, m_subject.interface, m_frame.memory, allocation_at());
        !checked)
        return fail(checked.error().code, "{}{}", checked.error().message, m_constants.why_not());
    if (auto ran = run_original(request); !ran) return ran;
    const auto after = read_module_state(classified.modules);
    if (!after) return std::unexpected(after.error());
    if (auto unchanged = check_unchanged(*before, *after); !unchanged) return unchanged;
    return m_constants.check_unchanged();
}

Result<RestorationRequest> AdoptionSession::request(cachefmt::EntryHeader header, Classified classified)
{
    if (auto checked = check_tables(m_subject, *m_trial); !checked) return std::unexpected(checked.error());
    if (auto looked = m_constants.look_before(m_subject.interface, m_frame.memory); !looked)
        return std::unexpected(looked.error());
    RestorationRequest result{m_subject.device,
                              std::move(header),
                              std::move(classified.graph),
                              classified.modules,
                              {},
                              {},
                              {},
                              m_frame.scalars,
                              {of_the_call(m_first.handles.events, m_subject.handles.events),
                               of_the_call(m_first.handles.semaphores, m_subject.handles.semaphores)},
                              m_subject.function};
    result.header.info.unproven = classified.unproven;
    if (auto judged = judge_variables(classified, result); !judged) return std::unexpected(judged.error());
    result.header.info.unused_words = static_cast<std::uint32_t>(classified.unused.size() + m_suspects.size());
    result.unused = std::move(classified.unused);
    result.labels.resize(result.modules.size());
    describe_declared(result.graph, m_device, m_frame, result.header.guards);
    auto contents = m_constants.read_into(result.graph);
    if (!contents) return std::unexpected(contents.error());
    std::ranges::move(*contents, std::back_inserter(result.constants)); // beside what scratch held
    if (auto reset = m_trial->reset(1); !reset) return std::unexpected(reset.error());
    result.regions = m_trial->regions();
    return result;
}

/// Ten times the original, and a second more.
Trials AdoptionSession::trials() const
{
    constexpr std::size_t k_patience = 10;
    return {m_subject.device, m_stream, m_trial, m_first.handles, k_patience * m_took + std::chrono::seconds{1},
            nullptr};
}

Result<Recording> AdoptionSession::adopt(cachefmt::EntryHeader header, const AdoptedCapture* second)
{
    const auto started = system_clock().steady();
    if (auto checked = check_arguments(second); !checked) return std::unexpected(checked.error());
    if (auto prepared = m_device.prepare_recording(); !prepared) return std::unexpected(prepared.error());
    auto stream = m_device.create_stream();
    if (!stream) return std::unexpected(stream.error());
    m_stream = std::move(*stream);

    auto graph = [&] {
        const auto timer = m_phases.measure("record");
        return classified(second);
    }();
    if (!graph) return std::unexpected(graph.error());
    auto trial = TrialMemory::create(m_subject.device, m_subject.interface, m_frame);
    if (!trial) return std::unexpected(trial.error());
    m_trial = std::move(*trial);
    m_spread = std::make_unique<Spread>(m_subject.device, m_subject.interface, region_types(m_frame),
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
    recording->entry.header.info.record_ms = Milliseconds{system_clock().steady() - started}.count();
    return recording;
}

} // namespace

Result<Recording> adopt(const Subject& subject, const Frame& frame, cachefmt::EntryHeader header,
                        const AdoptedCapture& first, const AdoptedCapture* second, const AdoptOptions& options,
                        replay::ModuleCache& modules, Phases& phases)
{
    return AdoptionSession{subject, frame, first, options, modules, phases}.adopt(std::move(header), second);
}

} // namespace warmgraph
