#include "warmgraph/call/call_outcomes.hpp"

#include <algorithm>

#include "warmgraph/base/log.hpp"
#include "warmgraph/call/new_miss.hpp"
#include "warmgraph/call/phase_times.hpp"
#include "warmgraph/guards/json.hpp"

namespace warmgraph {

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

Miss public_miss(const store::Miss& miss)
{
    Miss result{miss.time,
                miss.reason,
                std::string(to_string(miss.end)),
                short_hex(miss.call),
                miss.nearest ? short_hex(*miss.nearest) : "",
                miss.variants};
    for (const auto& [fact, recorded, now, cure] : miss.differences)
        result.differences.push_back({fact, recorded, now, cure});
    result.agree = miss.agree;
    return result;
}

} // namespace

CallOutcomes::CallOutcomes(std::shared_ptr<const Declaration> declaration, Sinks sinks)
    : m_declaration(std::move(declaration)), m_sinks(std::move(sinks))
{
    m_report.function = m_declaration->name;
}

// --- counters

void CallOutcomes::count_miss(const Plan& plan, const std::string& name, FirstCall& first_call) const
{
    log().info("{} {} {}: {}", plan.action == Plan::Action::refuse ? "refused" : "missed", m_declaration->path,
               short_hex(first_call.digest), plan.reason);
    if (name.empty()) return;
    m_sinks.counters.miss(name, plan.reason);
    begin_miss(first_call, plan.reason, plan.analysis);
    if (!m_sinks.store) return;
    store::FunctionUsage usage;
    usage.misses = 1;
    usage.events = store::one_event(store::EventKind::miss, plan.analysis.word);
    m_sinks.store->add_usage(m_declaration->key, usage);
}

void CallOutcomes::begin_miss(FirstCall& first_call, std::string reason, const MissAnalysis& analysis) const
{
    m_sinks.pause.note_miss();
    store::Miss& miss = first_call.miss.emplace(new_miss(m_declaration->policy));
    miss.reason = std::move(reason);
    miss.call = first_call.digest;
    miss.variants = analysis.variants;
    miss.nearest = analysis.nearest;
    miss.agree = analysis.agree;
    const std::size_t kept = std::min(analysis.differences.size(), store::k_most_missed_facts);
    for (const auto& [fact, recorded, now, cure] : std::span{analysis.differences}.first(kept))
        miss.differences.push_back({fact, recorded, now, cure});
    miss.more = analysis.differences.size() - kept;
}

void CallOutcomes::count_wrong_entry(FirstCall& first_call) const
{
    m_sinks.counters.miss(m_declaration->name, first_call.reason);
    begin_miss(first_call, first_call.reason, {});
}

void CallOutcomes::count_refusal(std::string_view word) const
{
    m_sinks.counters.refusal();
    if (!m_sinks.store) return;
    store::FunctionUsage usage;
    usage.refusals = 1;
    usage.events = store::one_event(store::EventKind::refused, word);
    m_sinks.store->add_usage(m_declaration->key, usage);
}

void CallOutcomes::count_refusal(const Error& error) const
{
    count_refusal(to_string(error.code));
    if (m_sinks.store && is_for_unkept_code(error)) note_unkept_code(*m_sinks.store, m_declaration->key);
}

void CallOutcomes::count_hit(LoadedVariant& variant, bool counts) const
{
    auto unused = std::exchange(variant.unused, std::nullopt);
    if (!unused) return;
    m_sinks.touched.note(cachefmt::EntryKey{m_declaration->key, variant.guards_digest});
    // Time that was counted for a program is not a saving of the graph.
    const double answer_ms =
        unused->answer_ms - std::min(m_sinks.programs->count_within(unused->compiled), unused->answer_ms);
    const std::uint64_t hits = counts ? 1 : 0;
    m_sinks.counters.hit(unused->load_ms, answer_ms, hits);
    store::FunctionUsage usage;
    usage.hits = hits;
    std::uint64_t bytes = 0;
    for (const auto& image : variant.executable->graph().images) bytes += image.size;
    if (counts) usage.events = store::one_event(store::EventKind::hit, "restored", bytes);
    usage.saved_ms = answer_ms - unused->load_ms;
    usage.warm = std::move(unused->times);
    m_sinks.store->add_usage_soon(m_declaration->key, usage);
}

// --- ends of calls

Outcome CallOutcomes::finish(const FirstCall& first_call, Outcome outcome, std::string reason, Remember remember)
{
    m_is_settled = true;
    m_report.outcome = outcome;
    m_report.reason = std::move(reason);
    m_report.entry = short_hex(first_call.digest);
    end_miss(first_call, miss_end(outcome));
    if (remember == Remember::yes && (outcome == Outcome::eager || outcome == Outcome::refused)) {
        m_verdicts.push_front({first_call.digest, outcome});
        if (m_verdicts.size() > m_sinks.most_verdicts) m_verdicts.pop_back();
    }
    return outcome;
}

void CallOutcomes::finish_thrown(const FirstCall& first_call) { end_miss(first_call, store::MissEnd::thrown); }

void CallOutcomes::end_report(const FirstCall& first_call)
{
    m_report.first_call_ms = Milliseconds{system_clock().steady() - first_call.started}.count();
    m_report.phases = times_of(first_call.phases);
    m_report.recording_bytes = m_report.outcome == Outcome::recorded ? first_call.recording_bytes : 0;
}

Outcome CallOutcomes::report_as_it_is(std::string reason, const Digest* entry)
{
    m_report.outcome = Outcome::eager;
    m_report.reason = std::move(reason);
    m_report.entry = entry != nullptr ? short_hex(*entry) : "";
    m_report.phases.clear();
    m_report.first_call_ms = 0;
    m_report.recording_bytes = 0;
    return Outcome::eager;
}

std::optional<Outcome> CallOutcomes::verdict(const Digest& guards_digest)
{
    const auto known = std::ranges::find(m_verdicts, guards_digest, &Verdict::guards_digest);
    if (known == m_verdicts.end()) return std::nullopt;
    m_verdicts.splice(m_verdicts.begin(), m_verdicts, known);
    return known->outcome;
}

/// Ends the journey's miss, if it has one.
void CallOutcomes::end_miss(const FirstCall& first_call, store::MissEnd end)
{
    if (!first_call.miss) return;
    store::Miss miss = *first_call.miss;
    miss.end = end;
    if (m_sinks.store) m_sinks.store->note_miss(m_declaration->key, miss, guards::to_json(first_call.now));
    store::add_miss(m_misses, std::move(miss));
}

std::vector<Miss> CallOutcomes::misses() const
{
    std::vector<Miss> result;
    std::ranges::transform(m_misses, std::back_inserter(result), public_miss);
    return result;
}

} // namespace warmgraph
