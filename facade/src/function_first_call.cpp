// Function::Impl: a call that no loaded variant answers: what is decided, done, counted and reported.
#include <algorithm>

#include "function_impl.hpp"
#include "throwing.hpp"
#include "tuner_impl.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph {

std::vector<cachefmt::Fact> Function::Impl::facts() const
{
    const auto& device = *m_device->device;
    if (m_half) return gather_facts(*m_cache, m_half->pair, m_spec, device, m_half->interface, m_code);
    if (m_code == nullptr)
        if (auto found = m_cache->found.take(m_name, device, m_spec, m_interface.text())) return std::move(*found);
    return gather_facts(*m_cache, m_name, m_spec, device, m_interface.text(), m_code);
}

/// The guards of the call in m_frame, here and now.
void Function::Impl::describe_call(Journey& journey)
{
    if (m_facts.empty()) m_facts = facts();
    journey.now.facts = m_facts;
    if (m_half) add_half_facts(journey.now.facts);
    journey.now.tensors =
        guards::describe(m_frame.tensors, m_interface.region_names, m_device->device->backend() + ":");
    for (std::size_t i = 0; i < journey.now.tensors.size(); ++i)
        if (m_device->device->space_of(m_frame.memory[i].address) == cachefmt::MemorySpace::host)
            journey.now.tensors[i].device = k_host_memory;
    for (std::size_t i = 0; i < m_interface.values.size(); ++i)
        journey.now.values.push_back({m_interface.values[i].name, m_interface.values[i].dtype, m_frame.values[i]});
    journey.digest = cachefmt::guards_digest(journey.now); // most entries do not care how overlapping tensors lie
    guards::guard_distances(journey.now.tensors, m_frame.tensors);
}

void Function::Impl::end_report(const Journey& journey)
{
    m_report.first_call_ms = Milliseconds{system_clock().steady() - journey.started}.count();
    m_report.phases = times_of(journey.phases);
}

Situation Function::Impl::situation(const cachefmt::Guards& now) const
{
    return {m_label,
            now,
            m_cache->relaxation,
            m_policy,
            m_callable != nullptr,
            has_pending(),
            m_cache->store ? "" : m_cache->disabled_reason,
            m_cache->kinds.graphs};
}

void Function::Impl::note_untrusted(const std::vector<store::Variant>& variants) const
{
    store::FunctionUsage usage;
    for (const auto& variant : variants) {
        if (variant.header || variant.header.error().code != ErrorCode::untrusted) continue;
        if (!m_cache->counters.untrusted({m_key, variant.guards_digest})) continue;
        log().warn("{} {} is not used: {}", label(), short_hex(variant.guards_digest), variant.header.error().message);
        usage.events.add(store::EventKind::untrusted, to_string(ErrorCode::untrusted), {1, variant.size});
    }
    if (!usage.events.all().empty()) m_cache->store->add_usage_soon(m_key, usage);
}

Headers Function::Impl::headers(const Digest& digest) const
{
    return {[this, digest] { return m_shelf->header({m_key, digest}).value_or(nullptr); },
            [this]() -> Result<std::vector<store::Variant>> {
                auto variants = m_shelf->variants(m_key);
                if (!variants) cache_fault("look-up", variants.error());
                if (variants) note_untrusted(*variants);
                return variants;
            }};
}

Outcome Function::Impl::first_call(const std::shared_ptr<backends::Stream>& stream, std::string why_not,
                                   std::unique_ptr<Job>& job)
{
    Journey journey;
    journey.started = system_clock().steady();
    journey.reason = std::move(why_not);
    describe_call(journey);

    if (const auto known = std::ranges::find(m_verdicts, journey.digest, &Verdict::guards_digest);
        known != m_verdicts.end()) {
        m_verdicts.splice(m_verdicts.begin(), m_verdicts, known);
        const Outcome outcome = known->outcome;
        run_eagerly(stream, journey.phases);
        return outcome;
    }
    const auto plan = [&] {
        const auto timer = journey.phases.measure("look up");
        return decide(situation(journey.now), headers(journey.digest));
    }();
    const Outcome outcome = act(plan, journey, stream, job);
    if (!job) end_report(journey); // else its end is still to come
    return outcome;
}

/// Of a graph that was restored ahead: its work is enqueued, and runs meanwhile. What a later call needs is taken now, as
/// whoever plans with what is left of the device's memory expects.
void Function::Impl::instantiate_behind(LoadedVariant& variant, Phases& phases) const
{
    if (variant.executable->is_complete()) return;
    const auto timer = phases.measure("instantiate");
    if (auto completed = variant.executable->complete(); !completed)
        log().warn("{} is not instantiated, and its next call tries again: {}", label(), completed.error().message);
    end_load(variant);
}

Outcome Function::Impl::act(const Plan& plan, Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                            std::unique_ptr<Job>& job)
{
    if (plan.action != Plan::Action::replay) return miss(plan, journey, stream, job);
    if (m_cache->verifies_first && m_callable) validate_tuned(); // it runs beside the graph
    if (m_cache->verifies_first && m_callable && has_pending()) return run_beside_pending(journey, stream, job);
    Unusable unusable{journey.reason};
    for (const auto& key : plan.entries) {
        auto variant = load(key, *stream, journey.phases);
        if (!variant) {
            unusable = std::move(variant.error());
            journey.tried = true;
            continue;
        }
        if (m_cache->verifies_first && m_callable) return answer_and_verify(std::move(*variant), journey, stream, job);
        count_hit(*variant);
        keep(std::move(*variant));
        const Milliseconds load_time = system_clock().steady() - journey.started;
        Result<void> launched;
        {
            const auto timer = journey.phases.measure("first launch");
            launched = launch(m_variants.front(), stream);
        }
        if (launched) {
            if (m_device->device->limits()
                    .flat_addresses) // else they are objects, which may be gone when they are used
                m_cache->places.note(*m_device->device, m_interface.region_names, m_frame.memory);
            instantiate_behind(m_variants.front(), journey.phases);
            log().info("loaded {} {} in {} ({})", label(), short_hex(key.guards_digest), time_text(load_time.count()),
                       m_variants.front().made);
            return finish(journey, Outcome::replayed, "", Remember::no);
        }
        cache_fault("replay", launched.error());
        m_variants.pop_front();
        unusable = {launched.error().message, launched.error().code};
        journey.tried = true;
    }
    if (!m_callable) m_load_failure = unusable.code; // nobody will record it anew
    auto instead = on_miss(situation(journey.now), unusable.reason);
    if (unusable.must_not_record) instead = {Plan::Action::refuse, {}, unusable.reason};
    return miss(instead, journey, stream, job);
}

namespace {

store::MissEnd miss_end(Outcome outcome) noexcept
{
    switch (outcome) {
    case Outcome::recorded: return store::MissEnd::recorded;
    case Outcome::replayed: return store::MissEnd::replayed;
    case Outcome::eager: return store::MissEnd::ran;
    case Outcome::refused: return store::MissEnd::refused;
    }
    return store::MissEnd::ran;
}

} // namespace

/// Fills the report, and remembers the verdict of a signature that runs as it is.
Outcome Function::Impl::finish(const Journey& journey, Outcome outcome, std::string reason, Remember remember)
{
    m_is_settled = true;
    m_report.outcome = outcome;
    m_report.reason = std::move(reason);
    m_report.entry = short_hex(journey.digest);
    note_miss(journey, miss_end(outcome));
    if (remember == Remember::yes && (outcome == Outcome::eager || outcome == Outcome::refused)) {
        m_verdicts.push_front({journey.digest, outcome});
        if (m_verdicts.size() > m_cache->options.max_variants) m_verdicts.pop_back();
    }
    return outcome;
}

void Function::Impl::count_miss(const Plan& plan, Journey& journey)
{
    const bool counts = !m_half || m_half->counts_miss();
    if (counts) m_cache->counters.miss(m_half ? m_half->pair : m_name, plan.reason);
    log().info("{} {} {}: {}", plan.action == Plan::Action::refuse ? "refused" : "missed", label(),
               short_hex(journey.digest), plan.reason);
    if (!counts) return;
    begin_miss(journey, plan.reason, plan.judgement);
    if (!m_cache->store) return;
    store::FunctionUsage usage;
    usage.misses = 1;
    usage.events = store::one_event(store::EventKind::miss, plan.judgement.word);
    m_cache->store->add_usage(m_key, usage);
}

/// The callable is about to run, outside of any capture. Once in a process for each configuration.
void Function::Impl::validate_tuned() const
{
    for (const Tuned& tuned : m_spec.tuned) TunedAccess::validate(tuned);
}

Outcome Function::Impl::miss(const Plan& plan, Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                             std::unique_ptr<Job>& job)
{
    const auto failure = std::exchange(m_load_failure, std::nullopt);
    if (m_policy != Policy::off && plan.lasts) count_miss(plan, journey); // else the call that records did so
    const bool throws = m_policy == Policy::require_hit || !m_callable;
    if (throws) note_miss(journey, store::MissEnd::thrown);
    if (m_policy == Policy::require_hit)
        raise({ErrorCode::miss_forbidden,
               fmt::format("'{}' must hit (policy require_hit) and misses: {}; record it first with policy read_write",
                           m_name, plan.reason)});
    if (!m_callable)
        raise(
            {failure.value_or(ErrorCode::miss_forbidden),
             fmt::format("'{}' can only be replayed (it was loaded without a callable) and misses: {}; record it where "
                         "its callable is (Cache::wrap), or adopt its graph (Cache::adopt)",
                         m_name, plan.reason)});
    journey.reason = plan.reason;
    validate_tuned();
    if (plan.action == Plan::Action::record) return answer_and_record(journey, stream, job);
    const bool refused = plan.action == Plan::Action::refuse;
    if (refused) count_refusal(plan.judgement.word);
    const Outcome outcome = finish_eagerly(journey, refused ? Outcome::refused : Outcome::eager, plan.reason,
                                           plan.lasts ? Remember::yes : Remember::no, stream);
    if (!plan.lasts) job = take_pending(*stream);
    return outcome;
}

/// The verdict is remembered first: a callable that throws is not recorded again at every call.
Outcome Function::Impl::finish_eagerly(Journey& journey, Outcome outcome, std::string reason, Remember remember,
                                       const std::shared_ptr<backends::Stream>& stream)
{
    finish(journey, outcome, std::move(reason), remember);
    const Milliseconds compiled_before = journey.phases.get("compile");
    const auto started = system_clock().steady();
    run_eagerly(stream, journey.phases);
    journey.phases.add("eager run",
                       system_clock().steady() - started - (journey.phases.get("compile") - compiled_before));
    return outcome;
}

} // namespace warmgraph
