#include "warmgraph/capture/recording.hpp"

#include <algorithm>
#include <optional>

#include "record/answer.hpp"
#include "record/observer.hpp"
#include "verify/constants.hpp"
#include "verify/module_state.hpp"
#include "verify/restoration.hpp"
#include "verify/trial_conditions.hpp"
#include "verify/trials.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

namespace {

constexpr std::size_t k_own_runs = 2; // runs in addition to the answer; more if results differ
constexpr std::size_t k_patience = 10;
constexpr std::chrono::seconds k_more_patience{1};

} // namespace

struct RecordingSession::Impl {
    Impl(CaptureTarget its_target, Frame its_frame, replay::ModuleCache& cache, RecordOptions its_options)
        : target(std::move(its_target)),
          frame(std::move(its_frame)),
          module_cache(cache),
          options(std::move(its_options)),
          scratch(target.device, ScratchPool::Kind::memory)
    {
        context.function = target.name;
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl()
    {
        if (answer && !answer->settle() && memory) memory->abandon();
    }

    [[nodiscard]] Result<void> prepare();
    [[nodiscard]] Result<void> find_constants(Captures& captures);
    [[nodiscard]] Result<RestorationRequest> observe(cachefmt::EntryHeader header, Phases& phases);
    [[nodiscard]] RestorationRequest request(cachefmt::EntryHeader header, Observation seen) const;
    [[nodiscard]] Result<void> check_variables() const;
    [[nodiscard]] Result<void> learn(const backends::RawGraph& capture);
    [[nodiscard]] Result<void> check_scratch(const std::shared_ptr<backends::GraphExec>& exec);
    [[nodiscard]] std::string unwritten_text() const;
    void make_trials();
    [[nodiscard]] Result<void> verify(replay::Executable& executable);
    using Outputs = TrialMemory::Outputs;
    [[nodiscard]] Result<void> verify_at(replay::Executable& executable, std::size_t placement, const Spread& own,
                                         Outputs outputs);
    [[nodiscard]] Result<void> verify_hit(replay::Executable& executable);
    [[nodiscard]] Result<void> verify_at_other_scalars(replay::Executable& executable);
    [[nodiscard]] std::optional<std::vector<std::uint64_t>> other_scalars() const;
    [[nodiscard]] Result<Recording> attempt(cachefmt::EntryHeader header, Phases& phases);
    [[nodiscard]] std::unique_ptr<Spread> new_spread() const
    {
        return std::make_unique<Spread>(target.device, target.interface, region_types(frame),
                                        compared_regions(*memory, frame.tensors.size()));
    }

    CaptureTarget target;
    Frame frame;
    replay::ModuleCache& module_cache;
    RecordOptions options;
    Constants constants{target.device, named(target.interface.constants), options.most_constant_bytes};
    RunContext context;
    std::shared_ptr<backends::Stream> stream;
    std::shared_ptr<TrialMemory> memory;
    ScratchPool scratch;
    std::optional<Answer> answer;
    std::optional<Observer>
        observer; // keeps the captures' addresses until the end, because no address may be used twice
    std::optional<Trials> trials;
    std::unique_ptr<Spread> spread;         // results of runs that start with the outputs' original contents
    std::unique_ptr<Spread> disturbed;      // results of runs that start with other outputs
    std::vector<backends::Module*> modules; // the capture's modules
    ModuleState variables;                  // the modules' variables after the answer
};

// --- preparation, before the answer

Result<void> RecordingSession::Impl::prepare()
{
    if (auto checked = check_no_managed(target, frame.memory); !checked) return checked;
    if (auto prepared = target.device->recording().prepare_recording(); !prepared) return prepared;
    auto made = target.device->create_stream();
    if (!made) return std::unexpected(made.error());
    stream = std::move(*made);
    auto copies = TrialMemory::create(target.device, target.interface, frame);
    if (!copies) return std::unexpected(copies.error());
    memory = std::move(*copies);
    if (auto looked = constants.look_before(target.interface, frame.memory); !looked) return looked;
    answer.emplace(target.device, target.handles);
    return answer->allocate(*memory);
}

// --- the look phase

/// Checks that declared constants still have their contents from before the answer. From now on all constants must keep
/// their present contents.
Result<void> RecordingSession::Impl::find_constants(Captures& captures)
{
    if (auto unchanged = constants.check_unchanged(); !unchanged) return unchanged;
    if (!options.keeps_undeclared) return {};
    std::vector<MemoryRef> in_use = frame.memory;
    std::ranges::copy(memory->regions(), std::back_inserter(in_use));
    if (auto found = constants.find(target.interface, captures, in_use); !found) return found;
    return constants.look_before(target.interface, frame.memory);
}

RestorationRequest RecordingSession::Impl::request(cachefmt::EntryHeader header, Observation seen) const
{
    RestorationRequest result{target.device,
                              std::move(header),
                              std::move(seen.classified.graph),
                              seen.classified.modules,
                              {},
                              {},
                              {},
                              frame.scalars,
                              target.handles,
                              target.function};
    auto& info = result.header.info;
    info.unproven = seen.classified.unproven;
    info.scalar_proofs = std::move(seen.scalar_proofs);
    info.unused_words = static_cast<std::uint32_t>(seen.unwritten_words);
    if (!seen.groups.empty()) { // other guards give the entry another key
        guards::guard_distances(result.header.guards.tensors, frame.tensors);
        result.header.key.guards_digest = cachefmt::guards_digest(result.header.guards);
    }
    describe_declared(result.graph, *target.device, frame, result.header.guards);
    for (backends::Module* module : result.modules) {
        const auto program = context.modules.find(module);
        result.labels.push_back(program != context.modules.end() ? program->second.name : "");
    }
    return result;
}

Result<RestorationRequest> RecordingSession::Impl::observe(cachefmt::EntryHeader header, Phases& phases)
{
    const auto timer = phases.measure("look");
    if (auto strayed = answer->check_enqueued(); !strayed) return std::unexpected(strayed.error());
    if (auto checked = check_tables(target, *memory); !checked) return std::unexpected(checked.error());
    observer.emplace(target, frame, *memory, scratch, stream, context, options.unused);
    const auto tenth = std::chrono::duration_cast<std::chrono::milliseconds>(phases.get("compile") / 10);
    auto seen = observer->observe(std::max(options.probing, tenth),
                                  [this](Captures& captures) { return find_constants(captures); });
    if (!seen) return fail(seen.error().code, "{}{}", seen.error().message, constants.why_not());
    if (auto checked = check_no_collectives(observer->capture()); !checked) return std::unexpected(checked.error());
    modules = seen->classified.modules;
    auto state = read_module_state(modules);
    if (!state) return std::unexpected(state.error());
    variables = std::move(*state);
    const std::size_t first_constant = seen->classified.graph.regions.size() - constants.all().size();
    const ModuleState stored = constants.relocated(variables, first_constant);
    const auto& vouched = options.frozen_variables;
    auto frozen = check_frozen(*target.device, modules, stored, vouched);
    if (!frozen) return std::unexpected(frozen.error());
    header.info.library_constants = *frozen;
    if (auto hidden = check_exposed(*target.device, modules, stored, vouched); !hidden)
        return std::unexpected(hidden.error());
    if (auto checked = check_module_state(modules, stored, target.interface, frame.memory, observer->allocations());
        !checked)
        return fail(checked.error().code, "{}{}", checked.error().message, constants.why_not());
    auto known = request(std::move(header), std::move(*seen));
    known.state = stored;
    auto contents = constants.read_into(known.graph);
    if (!contents) return std::unexpected(contents.error());
    known.constants = std::move(*contents);
    return known;
}

// --- the try phase

std::string RecordingSession::Impl::unwritten_text() const
{
    const std::size_t words = observer ? observer->unwritten_words() : 0;
    return words == 0
               ? ""
               : fmt::format(", or {} uninitialised words of its parameters, which are zeros in the capture", words);
}

/// A trial must not change a module's variables, because the caller's own functions use the variables too. Restores the
/// variables.
Result<void> RecordingSession::Impl::check_variables() const
{
    auto now = read_module_state(modules);
    if (!now) return std::unexpected(now.error());
    auto unchanged = check_unchanged(variables, *now);
    if (unchanged) {
        // The constants are not restored: if one is a whole segment of a framework, other code may have written to it.
        if (auto kept = constants.check_unchanged(); !kept)
            return fail(ErrorCode::partly_launched, "a test run changed memory that the call did not change: {}",
                        kept.error().message);
        return {};
    }
    if (auto put_back = write_module_state(modules, variables, *now); !put_back)
        return fail(ErrorCode::partly_launched,
                    "a test run changed module variables, and their contents could not be restored: {}",
                    put_back.error().message);
    return unchanged;
}

void RecordingSession::Impl::make_trials()
{
    trials.emplace(target.device, stream, memory, target.handles, k_patience * answer->took_at_most() + k_more_patience,
                   [this] { return check_variables(); });
}

/// The runs so far found zeros in scratch, as the first replay does. This run finds the last run's remains, as later
/// replays do.
Result<void> RecordingSession::Impl::check_scratch(const std::shared_ptr<backends::GraphExec>& exec)
{
    if (scratch.regions().empty()) return {};
    if (auto ran = trials->run(exec, scratch, ScratchHolds::what_was_left, Outputs::as_they_were); !ran) return ran;
    auto accepted = spread->accept(memory->regions());
    if (!accepted && accepted.error().code == ErrorCode::verification_failed)
        return fail(
            ErrorCode::not_recordable,
            "its results depend on the contents of scratch memory before the run ({}): it reads data that an earlier "
            "run left there; clear the scratch first, or declare memory that must last from call to call as a state",
            accepted.error().message);
    return accepted;
}

/// Runs of the capture that start with the original outputs must give the call's results; elements that nothing writes
/// keep their contents. Runs that start with other outputs give more results that a restored graph must match.
Result<void> RecordingSession::Impl::learn(const backends::RawGraph& capture)
{
    auto made = instantiate_for_trials(*target.device, capture);
    if (!made) return std::unexpected(made.error());
    const std::shared_ptr<backends::GraphExec> exec{std::move(*made)};
    const auto run_into = [&](Spread& into, Outputs outputs) {
        return [&into, outputs, &exec, this]() -> Result<std::size_t> {
            if (auto ran = trials->run(exec, scratch, ScratchHolds::zeros, outputs); !ran)
                return std::unexpected(ran.error());
            return into.add(memory->regions());
        };
    };
    spread = new_spread();
    const auto run = run_into(*spread, Outputs::as_they_were);
    if (auto learned = learn_spread(*spread, k_own_runs, run); !learned) return learned;
    auto accepted = spread->accept_answer(answer->results());
    if (!accepted && accepted.error().code == ErrorCode::verification_failed && spread->is_bitwise()) {
        // Runs more often, because two runs seldom show that results vary from run to run.
        for (std::size_t i = k_own_runs; i < k_most_own_runs; ++i)
            if (auto ran = run(); !ran) return std::unexpected(ran.error());
        if (auto measured = spread->measure(); !measured) return measured;
        accepted = spread->accept_answer(answer->results());
    }
    if (!accepted && accepted.error().code == ErrorCode::verification_failed)
        return fail(
            ErrorCode::not_recordable,
            "a run of its capture gives other results than the call itself: {}; it initialises or advances something "
            "that a capture does not contain (memory that is not declared, work of the host, a first call){}",
            accepted.error().message, unwritten_text());
    if (!accepted) return accepted;
    if (auto independent = check_scratch(exec); !independent) return independent;
    disturbed = new_spread();
    return learn_spread(*disturbed, spread->is_bitwise() ? 1 : k_most_own_runs,
                        run_into(*disturbed, Outputs::disturbed));
}

Result<void> RecordingSession::Impl::verify(replay::Executable& executable)
{
    auto accepted = verify_at(executable, 0, *spread, Outputs::as_they_were);
    if (accepted) accepted = verify_at(executable, 1, *disturbed, Outputs::disturbed);
    if (accepted) accepted = verify_at_other_scalars(executable);
    if (auto intact = trials->check_caller_memory(); !intact) return intact;
    return accepted ? constants.check_restored(executable) : accepted;
}

Result<void> RecordingSession::Impl::verify_at(replay::Executable& executable, std::size_t placement, const Spread& own,
                                               Outputs outputs)
{
    return trials->accept_at(placement, executable, frame.scalars, own, outputs);
}

/// Returns another value for each scalar with a declared range; nullopt if no scalar can change. Without a declared
/// range, other values may be invalid. A scalar that is a live handle keeps its value: another number would not be a
/// handle, and a kernel that used it would crash.
std::optional<std::vector<std::uint64_t>> RecordingSession::Impl::other_scalars() const
{
    auto scalars = frame.scalars;
    bool differ = false;
    for (std::size_t s = 0; s < scalars.size(); ++s) {
        const auto& scalar = target.interface.scalars[s];
        if (!scalar.range || (scalar.dtype == DType::u64 && target.device->recording().is_handle(scalars[s]))) continue;
        const auto plan = plan_probes(scalar.dtype, target.interface.ranges[s], scalars[s]);
        if (plan.values.empty()) continue;
        scalars[s] = plan.values[plan.least / 2];
        differ = true;
    }
    return differ ? std::optional{std::move(scalars)} : std::nullopt;
}

Result<void> RecordingSession::Impl::verify_at_other_scalars(replay::Executable& executable)
{
    const auto scalars = other_scalars();
    if (!scalars) return {};
    auto capture = observer->capture_at(*scalars);
    if (!capture) return std::unexpected(capture.error());
    auto made = instantiate_for_trials(*target.device, *capture);
    if (!made) return std::unexpected(made.error());
    const std::shared_ptr<backends::GraphExec> exec{std::move(*made)};
    const auto there = new_spread();
    const std::size_t runs = spread->is_bitwise() ? 1 : k_most_own_runs;
    for (std::size_t i = 0; i < runs; ++i) {
        if (auto ran = trials->run(exec, scratch, ScratchHolds::zeros, Outputs::disturbed); !ran) return ran;
        if (auto added = there->add(memory->regions()); !added) return std::unexpected(added.error());
    }
    if (auto measured = there->measure(); !measured) return measured;
    if (auto replayed = trials->replay(executable, 1, *scalars, Outputs::disturbed); !replayed) return replayed;
    return there->accept(memory->regions());
}

Result<Recording> RecordingSession::Impl::attempt(cachefmt::EntryHeader header, Phases& phases)
{
    const auto started = system_clock().steady();
    auto known = observe(std::move(header), phases);
    if (!known) return std::unexpected(known.error());
    const auto timer = phases.measure("try");
    if (auto same = memory->check_read_only(); !same) return std::unexpected(same.error());
    make_trials();
    if (auto learned = learn(observer->capture()); !learned) {
        if (auto intact = trials->check_caller_memory(); !intact) return std::unexpected(intact.error());
        return std::unexpected(learned.error());
    }
    if (auto intact = trials->check_caller_memory(); !intact) return std::unexpected(intact.error());
    if (auto reset = memory->reset(1); !reset) return std::unexpected(reset.error());
    known->regions = memory->regions();
    const Verify held{[this](replay::Executable& executable) { return verify(executable); },
                      [this] { return trials->is_abandoned(); }};
    auto recording = restore_verified(*known, module_cache, held);
    if (!recording) return recording;
    auto& info = recording->entry.header.info;
    info.verification = verification_text(*spread, recording->entry.graph);
    info.answer_ms = Milliseconds{answer->took(trials->fastest_run())}.count();
    recording->run_ms = Milliseconds{trials->fastest_run()}.count();
    info.record_ms = Milliseconds{system_clock().steady() - started}.count();
    return recording;
}

// --- verification of a hit

/// If results are the same each time, the answer alone shows the right results. If they vary, runs of a capture show by
/// how much they may vary.
Result<void> RecordingSession::Impl::verify_hit(replay::Executable& executable)
{
    make_trials();
    const auto alone = new_spread();
    if (auto added = alone->add(answer->results()); !added) return std::unexpected(added.error());
    if (auto measured = alone->measure(); !measured) return measured;
    auto accepted = trials->accept_all(executable, frame.scalars, *alone, Outputs::as_they_were);
    if (!accepted && accepted.error().code == ErrorCode::verification_failed && !trials->is_abandoned()) {
        if (!observer) observer.emplace(target, frame, *memory, scratch, stream, context, options.unused);
        auto capture = observer->capture_at(frame.scalars);
        if (!capture) return std::unexpected(capture.error());
        if (auto learned = learn(*capture); !learned) return learned;
        if (!spread->is_bitwise())
            accepted = trials->accept_all(executable, frame.scalars, *spread, Outputs::as_they_were);
    }
    if (auto intact = trials->check_caller_memory(); !intact) return intact;
    return accepted;
}

// --- the public class

RecordingSession::RecordingSession(CaptureTarget target, Frame frame, replay::ModuleCache& modules,
                                   RecordOptions options)
    : m_impl(std::make_shared<Impl>(std::move(target), std::move(frame), modules, std::move(options)))
{
}
RecordingSession::~RecordingSession() = default;

Result<void> RecordingSession::prepare() { return m_impl->prepare(); }

Result<void> RecordingSession::begin_answer(const std::shared_ptr<backends::Stream>& stream)
{
    return m_impl->answer->begin(stream);
}

void RecordingSession::give_up() noexcept
{
    m_impl->answer.reset();
    m_impl->memory.reset();
}

Result<void> RecordingSession::end_answer(const RunContext& context)
{
    m_impl->context.modules = context.modules;
    return m_impl->answer->end(context, *m_impl->memory);
}

bool RecordingSession::waits_outside() const noexcept { return m_impl->answer->waits_outside(); }
Result<bool> RecordingSession::is_answered() { return m_impl->answer->is_done(); }

/// Prepares the trials while the device works. Does so neither earlier nor on another thread: loading code may wait for
/// all work on the device, and the answer's work may wait for this thread.
Result<void> RecordingSession::wait_for_answer()
{
    if (auto done = m_impl->answer->is_done(); !done)
        return std::unexpected(done.error()); // is_done() notes the time if the work is done
    m_impl->target.device->bulk().warm_up();
    return m_impl->answer->wait();
}

Result<void> RecordingSession::verify(replay::Executable& executable, Phases& phases)
{
    m_impl->context.phases = &phases;
    const auto timer = phases.measure("verify");
    return m_impl->verify_hit(executable);
}

bool RecordingSession::strayed() const noexcept { return m_impl->answer && m_impl->answer->strayed(); }
bool RecordingSession::is_abandoned() const noexcept { return m_impl->trials && m_impl->trials->is_abandoned(); }

Result<Recording> RecordingSession::record(cachefmt::EntryHeader header, Phases& phases)
{
    m_impl->context.phases = &phases;
    return m_impl->attempt(std::move(header), phases);
}

} // namespace warmgraph
