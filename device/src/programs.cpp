#include "warmgraph/device/programs.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph {
namespace {

constexpr std::size_t k_most_reasons = 64;

thread_local const ProgramUse* t_programs = nullptr;

/// Returns the policy for programs; nullopt if programs are neither loaded nor stored.
std::optional<precompile::ProgramPolicy> program_policy(Policy policy) noexcept
{
    using precompile::ProgramPolicy;
    switch (policy) {
    case Policy::read_write: return ProgramPolicy::use_and_keep;
    case Policy::refresh: return ProgramPolicy::renew;
    case Policy::no_compile: return ProgramPolicy::use_only;
    // A call without an entry throws before it compiles. Code that runs outside of calls, or when a hit is verified,
    // may compile.
    case Policy::require_hit:
    case Policy::read_only: return ProgramPolicy::use;
    case Policy::off: break;
    }
    return std::nullopt;
}

store::ArtifactName name_of(const precompile::Ingredients& ingredients)
{
    return {store::ArtifactKind::compiled, precompile::key_of(ingredients)};
}

} // namespace

const ProgramUse* current_programs() noexcept { return t_programs; }
ProgramScope::ProgramScope(const ProgramUse* use) noexcept : m_outer(std::exchange(t_programs, use)) {}
ProgramScope::~ProgramScope() { t_programs = m_outer; }

Programs::Programs(std::shared_ptr<store::LocalStore> store, const cachefmt::Trust& trust, std::string why_off,
                   std::string tag)
    : m_store(std::move(store)),
      m_why_off(std::move(why_off)),
      m_tag(std::move(tag)),
      m_may_keep(m_store && m_store->why_read_only().empty() && (!trust.require || trust.sign_with))
{
    if (m_store) m_cache.emplace(*m_store, trust);
}

Result<std::shared_ptr<backends::Module>> Programs::module(const Program::Impl& program, Policy policy)
{
    using precompile::ProgramPolicy;
    auto allowed = program_policy(policy);
    if (!m_cache && allowed == ProgramPolicy::use_only) {
        const std::scoped_lock lock{m_mutex};
        ++m_counts.refused;
        return std::unexpected(precompile::compile_forbidden(m_why_off));
    }
    if (!allowed || !m_cache) return program.compile();
    if (!m_may_keep && *allowed == ProgramPolicy::use_and_keep) allowed = ProgramPolicy::use;
    const auto began = system_clock().steady();
    auto made =
        m_cache->make(*program.device->device, {program.name, program.source, program.options, m_tag}, *allowed);
    const std::scoped_lock lock{m_mutex};
    if (!made) {
        if (made.error().code == ErrorCode::miss_forbidden) {
            ++m_counts.refused;
            m_store->add_usage_soon(
                store::ArtifactKind::compiled,
                {.refusals = 1, .events = store::one_event(store::EventKind::refused, "no_compile")});
        }
        return std::unexpected(made.error());
    }
    count(program.name, *made);
    std::shared_ptr<backends::Module> module = std::move(made->module);
    std::erase_if(m_known, [](const TrackedProgram& known) { return known.module.expired(); });
    if (made->origin) {
        const bool is_loaded = made->outcome == precompile::ProgramResult::Outcome::loaded;
        if (is_loaded) m_touched.insert(name_of(made->origin->ingredients));
        const bool is_kept = m_may_keep && *allowed != ProgramPolicy::use;
        auto ready = made->origin->ready;
        TrackedProgram& known = m_known.emplace_back(program.device, module, std::move(made->origin), is_kept,
                                                     is_loaded ? std::nullopt : std::optional(began), std::move(ready));
        if (is_kept) store_locked(known);
    }
    return module;
}

void Programs::count(const std::string& program, const precompile::ProgramResult& made)
{
    for (const Error& fault : made.faults) fault_locked(fault);
    const std::optional<Digest> key =
        made.origin ? std::optional(precompile::key_of(made.origin->ingredients)) : std::nullopt;
    store::FunctionUsage usage;
    if (made.outcome == precompile::ProgramResult::Outcome::loaded) {
        ++m_counts.loaded;
        m_counts.load_ms += made.ms;
        usage.hits = 1;
        usage.events = store::one_event(store::EventKind::hit, "loaded");
        Account& account = m_accounts[*key];
        account.is_loaded = true;
        const double counted = std::min(std::exchange(account.saved, 0), made.origin->compile_ms);
        return save(made.saved_ms - counted, std::move(usage));
    }
    ++m_counts.compiled;
    m_counts.compile_ms += made.ms;
    usage.misses = 1;
    usage.events = store::one_event(store::EventKind::miss, made.word);
    save(key ? -pay(*key, made.ms) : 0, std::move(usage));
    if (m_counts.miss_reasons.size() < k_most_reasons)
        m_counts.miss_reasons.push_back(fmt::format("{}: {}", program, made.reason));
    log().debug("compiled in {}: {}", time_text(made.ms), made.reason);
}

void Programs::save(double ms, store::FunctionUsage usage)
{
    m_counts.saved_ms += ms;
    usage.saved_ms = ms;
    m_store->add_usage_soon(store::ArtifactKind::compiled, usage);
}

double Programs::pay(const Digest& program, double ms)
{
    Account& account = m_accounts[program];
    const double contained = std::min(account.saved, ms);
    account.saved -= contained;
    account.paid += ms - contained;
    return contained;
}

/// Whether the program compiled at launches since the last share_out().
bool Programs::compiles_at_launch(TrackedProgram& known)
{
    const auto device = known.device.lock();
    const auto module = known.module.lock(); // must be destroyed before its device
    if (!device || !module || !device->device->compiler().compiles_at_launch()) return false;
    const auto compiled = device->device->compiler().compiled(*module);
    if (!compiled) return known.ready.empty();
    return std::exchange(known.ready, compiled->ready) != compiled->ready;
}

std::vector<cachefmt::CompiledWithin> Programs::share_out(
    const std::vector<std::shared_ptr<backends::Module>>& launched, Time began, double spent_ms)
{
    const std::scoped_lock lock{m_mutex};
    std::vector<TrackedProgram*> at_launch;
    std::map<TrackedProgram*, double> within;
    for (TrackedProgram& known : m_known) {
        if (std::ranges::find(launched, known.module.lock()) == launched.end()) continue;
        if (known.compiled && *known.compiled >= began) spent_ms -= (within[&known] = known.origin->compile_ms);
        if (compiles_at_launch(known)) at_launch.push_back(&known);
    }
    const double share = at_launch.empty() ? 0 : std::max(spent_ms, 0.0) / static_cast<double>(at_launch.size());
    for (TrackedProgram* const known : at_launch) {
        within[known] += share;
        known->origin->compile_ms += share;
        m_counts.compile_ms += share;
        if (const double contained = pay(precompile::key_of(known->origin->ingredients), share); contained > 0)
            save(-contained, {});
    }
    std::vector<cachefmt::CompiledWithin> result;
    for (const auto& [known, ms] : within)
        result.push_back(
            {precompile::key_of(known->origin->ingredients), ms, !known->compiled || *known->compiled < began});
    return result;
}

double Programs::count_within(const std::vector<cachefmt::CompiledWithin>& programs)
{
    const std::scoped_lock lock{m_mutex};
    double counted = 0;
    for (const auto& [program, ms, at_launch] : programs) {
        Account& account = m_accounts[program];
        if (!std::isfinite(account.saved + ms)) continue; // times from a stored artifact may be invalid
        double overlap = ms;
        if (!account.is_loaded) {
            overlap = at_launch ? 0 : std::min(account.begun, ms);
            if (!at_launch) account.begun = std::max(account.begun, ms);
            const double paid = std::min(account.paid, ms - overlap);
            account.paid -= paid;
            overlap += paid;
            account.saved += ms - overlap;
        }
        counted += overlap;
    }
    return counted;
}

void Programs::fault_locked(const Error& error)
{
    ++m_counts.faults;
    log().warn("{}", error.message);
}

void Programs::store_locked(TrackedProgram& known)
{
    const auto device = known.device.lock();
    const auto module = known.module.lock(); // must be destroyed before its device
    if (!device || !module) return;
    const auto stored = m_cache->keep(device->device->compiler(), *module, *known.origin);
    if (stored && *stored) m_touched.insert(name_of(known.origin->ingredients));
    if (stored) return;
    known.is_kept = false; // the program is not tried again at each recording
    fault_locked(
        within(fmt::format("compiled program '{}' is not stored", known.origin->ingredients.program), stored.error())
            .error());
}

void Programs::keep_ready() noexcept
try {
    const std::scoped_lock lock{m_mutex};
    for (TrackedProgram& known : m_known)
        if (known.is_kept) store_locked(known);
} catch (const std::exception& error) {
    log().debug("compiled programs are not stored: {}", error.what());
}

void Programs::keep(const Program::Impl& program) noexcept
try {
    if (!m_may_keep || !program.module) return;
    if (const auto image = program.module->image(); !image) // makes PoCL compile the image now
        return log().debug("compiled program '{}' is not stored: {}", program.name, image.error().message);
    const std::scoped_lock lock{m_mutex};
    for (TrackedProgram& known : m_known) {
        if (known.module.lock() != program.module) continue;
        known.is_kept = true;
        store_locked(known);
    }
} catch (const std::exception& error) {
    log().debug("compiled programs are not stored: {}", error.what());
}

std::vector<store::ArtifactName> Programs::touched() const
{
    const std::scoped_lock lock{m_mutex};
    return {m_touched.begin(), m_touched.end()};
}

ProgramCounts Programs::counts() const
{
    const std::scoped_lock lock{m_mutex};
    return m_counts;
}

} // namespace warmgraph
