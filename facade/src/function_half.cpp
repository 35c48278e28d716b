// Function::Impl, where it is one half of a pair.
#include <algorithm>

#include "function_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph {

void Function::Impl::refuse_nested() const
{
    if (const RunContext* running = current_run()) refuse_nested_call(*running);
}

/// Beside the facts of both halves, which are the same: the forward half that a backward half is for.
void Function::Impl::add_half_facts(std::vector<cachefmt::Fact>& facts) const
{
    facts.insert(facts.end(), m_half->facts.begin(), m_half->facts.end());
    if (m_half->forward)
        facts.push_back({cachefmt::k_forward_fact, to_hex(*m_half->forward), cachefmt::Role::must_match});
    guards::canonicalize(facts);
}

Outcome Function::Impl::run_unused(const std::shared_ptr<backends::Stream>& stream, std::string why)
{
    m_report.outcome = Outcome::eager;
    m_report.reason = std::move(why);
    m_report.entry.clear();
    m_report.phases.clear();
    m_report.first_call_ms = 0;
    Phases unmeasured;
    run_eagerly(stream, unmeasured);
    return Outcome::eager;
}

/// What it would save backward in its own scratch, a replay would not: nothing is replayed before backward is known to
/// use none of that.
Outcome Function::Impl::run_unused(const LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream)
{
    const bool waits = variant.use == LoadedVariant::Use::waits;
    const Digest digest = variant.guards_digest;
    const Outcome outcome =
        run_unused(stream, waits ? "its backward is not recorded yet" : "its backward cannot be recorded");
    if (waits) m_served = {digest, true};
    m_report.entry = short_hex(digest);
    return outcome;
}

std::optional<Function::Impl::Served> Function::Impl::served() const
{
    const std::scoped_lock lock{m_mutex};
    return m_served;
}

void Function::Impl::end_wait(const Digest& forward)
{
    const std::scoped_lock lock{m_mutex};
    for (LoadedVariant& variant : m_variants)
        if (variant.guards_digest == forward && variant.use == LoadedVariant::Use::waits)
            variant.use = LoadedVariant::Use::replayed;
}

void Function::Impl::give_up(const Digest& forward)
{
    const std::scoped_lock lock{m_mutex};
    for (LoadedVariant& variant : m_variants) {
        if (variant.guards_digest != forward || variant.use == LoadedVariant::Use::runs_as_it_is) continue;
        log().warn("{} {} is not replayed: its backward cannot be recorded", label(), short_hex(forward));
        variant.use = LoadedVariant::Use::runs_as_it_is;
        variant.executable.reset();
    }
}

void Function::Impl::forget(const Digest& forward)
{
    const std::scoped_lock lock{m_mutex};
    std::erase_if(m_variants, [&](const LoadedVariant& variant) { return variant.forward == forward; });
}

std::vector<NamedMemory> Function::Impl::scratch_memory() const
{
    const std::scoped_lock lock{m_mutex};
    return m_scratch.regions();
}

} // namespace warmgraph
