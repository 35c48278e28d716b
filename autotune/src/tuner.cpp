#include <algorithm>

#include "warmgraph/autotune/tuned_key.hpp"
#include "warmgraph/autotune/tuner_impl.hpp"
#include "warmgraph/autotune/tuning_bench.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/capture/run_context.hpp"
#include "warmgraph/precompile/included_headers.hpp"
#include "warmgraph/store/settings.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {
namespace {

constexpr std::size_t k_most_tuning_reasons = 64;

autotune::Space space_of(const TunableKernel& kernel)
{
    autotune::Space space{kernel.candidates, {}, kernel.admits};
    for (const TuningRange& range : kernel.ranges) space.ranges.push_back({range.name, range.values});
    return space;
}

void require_usable(const TunableKernel& kernel)
{
    value_or_raise(cachefmt::check_name("kernel's name", kernel.name));
    if (auto ok = autotune::check(space_of(kernel)); !ok) raise(within(kernel.name, ok.error()).error());
    if (!kernel.work)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' has no work to time: set TunableKernel::work", kernel.name)});
    for (const double tolerance : {kernel.relative_tolerance, kernel.absolute_tolerance})
        if (!(tolerance >= 0))
            raise({ErrorCode::invalid_argument,
                   fmt::format("a tolerance of '{}' is {}, expected 0 or more", kernel.name, tolerance)});
}

void require_options(const TuningOptions& options)
{
    if (options.rounds == 0 || !(options.min_gain >= 0 && options.min_gain < 1) || !(options.batch_ms >= 0))
        raise({ErrorCode::invalid_argument,
               fmt::format("rounds {}, min_gain {}, batch_ms {}: expected at least 1 round, a gain from 0 to below 1, "
                           "and 0 ms or more",
                           options.rounds, options.min_gain, options.batch_ms)});
}

TuningReport untuned(const TunedKernel& shared, std::string reason)
{
    TuningReport report{shared.kernel.name};
    report.reason = std::move(reason);
    report.config = shared.kernel.candidates.front();
    return report;
}

std::string of_kernel(const TunedKernel& shared)
{
    return fmt::format("the tuned configuration of '{}'", shared.kernel.name);
}

store::ArtifactName name_of(const autotune::BestConfig& best) { return {store::ArtifactKind::tuned, best.key}; }

/// Returns the programs that the tuning compiled and stored.
std::vector<cachefmt::CompiledWithin> within(const autotune::BestConfig& best)
{
    std::vector<cachefmt::CompiledWithin> programs;
    for (const auto& [key, ms] : best.programs) programs.push_back({.program = key, .ms = ms, .at_launch = false});
    return programs;
}

TuningReport report_of(const autotune::BestConfig& best, TuningOutcome outcome, std::string reason)
{
    TuningReport report{best.kernel, outcome, std::move(reason), best.config, std::string(to_string(best.found_by))};
    report.search_ms = best.took_ms;
    report.default_ms = best.timings.front().ms;
    report.best_ms = autotune::timing_of(best.timings, best.config)->ms;
    for (const auto& [config, ms, rounds, failed] : best.timings)
        report.timings.push_back({config, ms, rounds, failed});
    return report;
}

void join(TuningStatistics& into, const TuningStatistics& more)
{
    into.hits += more.hits;
    into.misses += more.misses;
    into.tuned += more.tuned;
    into.carried += more.carried;
    into.rejected += more.rejected;
    into.faults += more.faults;
    into.tuning_ms += more.tuning_ms;
    into.load_ms += more.load_ms;
    into.saved_ms += more.saved_ms;
    for (const std::string& reason : more.miss_reasons)
        if (into.miss_reasons.size() < k_most_tuning_reasons) into.miss_reasons.push_back(reason);
}

} // namespace

std::string definitions_of(const TunedConfig& config)
{
    std::string text;
    for (const auto& [name, value] : config) text += fmt::format("{}-D {}={}", text.empty() ? "" : " ", name, value);
    return text;
}

TuningRange powers_of_two(std::string name, std::int64_t low, std::int64_t high)
{
    if (low < 1 || high < low)
        raise({ErrorCode::invalid_argument,
               fmt::format("the range of '{}' is {} to {}, expected 1 or more, ascending", name, low, high)});
    TuningRange range{std::move(name), {}};
    for (std::int64_t value = low; value <= high; value *= 2) {
        range.values.push_back(value);
        if (value > high / 2) break;
    }
    return range;
}

std::string_view to_string(TuningOutcome outcome) noexcept
{
    switch (outcome) {
    case TuningOutcome::tuned: return "tuned";
    case TuningOutcome::stored: return "stored";
    case TuningOutcome::untuned: return "untuned";
    }
    return "unknown";
}

// --- Tuned

const TunedConfig& Tuned::config() const noexcept { return m_impl->report.config; }
const TuningReport& Tuned::report() const noexcept { return m_impl->report; }
void Tuned::validate() const { m_impl->tuner->validate_late(*m_impl->shared, report()); }

void TunedAccess::validate(const Tuned& tuned)
{
    if (tuned.report().outcome == TuningOutcome::stored) tuned.validate();
}

// --- Tuner

Tuned Tuner::tune(const TunableKernel& kernel) { return m_impl->tune(kernel); }
std::vector<std::string> Tuner::reload() { return m_impl->reload(); }
TuningStatistics Tuner::statistics() const { return m_impl->statistics(); }

Tuner::Impl::Impl(TunerSources of_cache, Device on, const TuningOptions& how, Clock& time)
    : cache(std::move(of_cache)), device(std::move(on)), options(how), clock(time)
{
    require_options(options);
    if (cache.store && cache.uses_stored) library.emplace(cache.store->tiers());
    cache.tunings.add(*this);
}

Tuner::Impl::~Impl() { cache.tunings.remove(*this); }

void Tunings::add(const Tuner::Impl& tuner)
{
    const std::scoped_lock lock{m_mutex};
    m_tuners.insert(&tuner);
}

void Tunings::remove(const Tuner::Impl& tuner)
{
    const std::scoped_lock lock{m_mutex};
    m_tuners.erase(&tuner);
    join(m_gone, tuner.statistics());
}

TuningStatistics Tunings::total() const
{
    const std::scoped_lock lock{m_mutex};
    TuningStatistics result = m_gone;
    for (const Tuner::Impl* tuner : m_tuners) join(result, tuner->statistics());
    return result;
}

std::shared_ptr<TunedKernel> Tuner::Impl::describe(const TunableKernel& kernel) const
{
    require_usable(kernel);
    const auto& backend = *DeviceAccess::impl(device)->device;
    auto shared = std::make_shared<TunedKernel>();
    shared->kernel = kernel;
    shared->device = device_facts(backend);
    autotune::ConfigRequest& wanted = shared->wanted;
    wanted.kernel = kernel.name;
    wanted.key = tuned_key(kernel, shared->device, cache.tag);
    shared->why_not_kept = included_headers(kernel.source, kernel.options).why_unknown;
    wanted.space = space_of(kernel);
    wanted.driver = driver_facts(backend);
    if (options.search == TuningSearch::coordinate_descent) wanted.search = autotune::SearchMethod::coordinate_descent;
    if (options.driver == TuningDriver::any) wanted.driver_rule = autotune::DriverRule::any;
    return shared;
}

Tuned Tuner::Impl::tune(const TunableKernel& kernel, const LoadedConfigs& loaded_configs)
{
    auto described = describe(kernel);
    const std::scoped_lock lock{mutex};
    auto& shared = kernels[{described->wanted.key, autotune::configs_hash(kernel.candidates)}];
    if (!shared) shared = std::move(described);
    if (has_rejected(*shared)) {
        shared->current = untuned(*shared, "its stored winner was rejected in this process");
        shared->best.reset();
    } else if (!shared->current) {
        const auto begin = clock.steady();
        const double saved_before = cache.programs->counts().saved_ms;
        TuningReport report = decide(*shared, loaded_configs);
        report.took_ms = Milliseconds{clock.steady() - begin}.count();
        if (report.outcome == TuningOutcome::stored) take_off(report.took_ms, saved_before);
        shared->current = std::move(report);
    }
    return Tuned{std::make_shared<const Tuned::Impl>(*shared->current, shared, shared_from_this())};
}

void Tuner::Impl::validate_late(TunedKernel& shared, const TuningReport& report)
{
    const double saved_before = cache.programs->counts().saved_ms;
    const auto begin = clock.steady();
    validate(shared, report.config);
    if (report.outcome == TuningOutcome::stored) take_off(Milliseconds{clock.steady() - begin}.count(), saved_before);
}

void Tuner::Impl::take_off(double ms, double saved_before)
{
    // Leaves out the compile time of programs, because their own statistics already subtract it.
    const double used_ms = ms - std::max(saved_before - cache.programs->counts().saved_ms, 0.0);
    store::FunctionUsage usage;
    usage.saved_ms = -used_ms;
    cache.store->add_usage_soon(store::ArtifactKind::tuned, usage);
    const std::scoped_lock lock{counting};
    counts.load_ms += used_ms;
    counts.saved_ms -= used_ms;
}

Tuner::Impl::ConfigLookup Tuner::Impl::look_up_file(const TunedKernel& shared)
{
    ConfigLookup found;
    const auto none = [&found](std::string why, std::string_view word) {
        found.judgement = {autotune::WinnerVerdict::Use::none, std::move(why)};
        found.word = word;
    };
    auto stored = library->find(shared.wanted.key);
    if (!stored) {
        fault("read", of_kernel(shared), stored.error());
        none("the stored configuration cannot be used: " + stored.error().message, to_string(stored.error().code));
    } else if (!*stored) {
        none("no stored configuration", "no_configuration");
    } else {
        found.judgement = autotune::judge(**stored, shared.wanted);
        found.best = std::move(**stored);
    }
    return found;
}

/// Finds the stored configuration. The kernel's own file is the newest. If that file cannot be used, the module's
/// configuration is used and stored again.
Tuner::Impl::ConfigLookup Tuner::Impl::look_up(const TunedKernel& shared, const LoadedConfigs& loaded_configs)
{
    using Use = autotune::WinnerVerdict::Use;
    if (cache.policy == Policy::refresh) return {{}, {Use::none, "policy refresh"}, "refresh"};
    ConfigLookup found = look_up_file(shared);
    const auto carried = loaded_configs.find(shared.wanted.key);
    if (found.judgement.use != Use::none || carried == loaded_configs.end()) return found;
    const auto judgement = autotune::judge(carried->second, shared.wanted);
    if (judgement.use == Use::none) return found;
    if (judgement.use == Use::winner && why_not_written().empty()) {
        if (const auto put = library->put(carried->second); !put) fault("write", of_kernel(shared), put.error());
        cache.store->make_room();
    }
    const std::scoped_lock lock{counting};
    ++counts.carried;
    return {carried->second, judgement};
}

bool Tuner::Impl::has_rejected(TunedKernel& shared)
{
    const std::scoped_lock lock{shared.mutex};
    return !shared.rejected.empty();
}

std::string Tuner::Impl::why_not_written() const
{
    if (cache.policy == Policy::read_only) return "policy read_only";
    if (cache.policy == Policy::require_hit) return "policy require_hit";
    const std::string& why = cache.store->why_read_only();
    return why.empty() ? "" : "the cache folder is read-only: " + why;
}

std::string Tuner::Impl::why_not_tuned(const TunedKernel& shared) const
{
    const bool is_unknown = std::ranges::any_of(shared.device, [](const auto& fact) {
        return fact.second == cachefmt::k_unknown && fact.first.starts_with(cachefmt::fact::k_device);
    });
    if (is_unknown) return "the driver does not report which device this is";
    if (cache.policy == Policy::no_compile) return "policy no_compile";
    return why_not_written();
}

TuningReport Tuner::Impl::use_stored(TunedKernel& shared, const autotune::BestConfig& stored, std::string reason)
{
    if (!is_proven(shared, stored.config)) return untuned(shared, "its stored winner was rejected: see the log");
    shared.best = stored;
    cache.touched.note(name_of(stored));
    const double saved = std::max(stored.took_ms - cache.programs->count_within(within(stored)), 0.0);
    const std::scoped_lock lock{counting};
    ++counts.hits;
    counts.saved_ms += saved;
    store::FunctionUsage usage;
    usage.hits = 1;
    usage.saved_ms = saved;
    usage.events = store::one_event(store::EventKind::hit, "used");
    cache.store->add_usage_soon(store::ArtifactKind::tuned, usage);
    return report_of(stored, TuningOutcome::stored, std::move(reason));
}

TuningReport Tuner::Impl::decide(TunedKernel& shared, const LoadedConfigs& loaded_configs)
{
    if (!library) return untuned(shared, cache.store ? store::switched_off("tuned configurations") : cache.why_off);
    if (!shared.why_not_kept.empty()) return untuned(shared, shared.why_not_kept);
    const ConfigLookup found = look_up(shared, loaded_configs);
    const std::string barred = why_not_tuned(shared);
    using Use = autotune::WinnerVerdict::Use;
    if (found.judgement.use == Use::winner) return use_stored(shared, *found.best, "");
    if (found.judgement.use == Use::start && !barred.empty()) // the stored winner is valid and better than the default
        return use_stored(shared, *found.best,
                          "coordinate descent would start from it, but this process does not tune: " + barred);
    std::string reason = found.judgement.use == Use::start ? "coordinate descent starts from the stored winner"
                                                           : found.judgement.why_not;
    miss(shared, reason, found.word);
    if (cache.policy == Policy::require_hit)
        raise({ErrorCode::miss_forbidden,
               fmt::format("kernel '{}' must have a tuned configuration (policy require_hit): {}; tune it first with "
                           "policy read_write",
                           shared.kernel.name, reason)});
    if (!barred.empty())
        return untuned(shared, fmt::format("{}, and this process does not tune it: {}", reason, barred));
    shared.best = search(shared, found);
    keep(*shared.best);
    return report_of(*shared.best, TuningOutcome::tuned, std::move(reason));
}

autotune::BestConfig Tuner::Impl::search(TunedKernel& shared, const ConfigLookup& found)
{
    value_or_raise(refuse_while_capturing("Tuner::tune", "tune before the call"));
    const auto& wanted = shared.wanted;
    const autotune::SearchRules rules{.rounds = options.rounds, .min_gain = options.min_gain};
    TuningBench bench{device, shared.kernel, options.batch_ms, clock, {cache.programs, cache.policy}};
    const auto checked = [&shared](Result<autotune::Winner> result) {
        if (!result) raise(within(fmt::format("kernel '{}'", shared.kernel.name), result.error()).error());
        return std::move(*result);
    };
    const double before = found.judgement.use == autotune::WinnerVerdict::Use::start ? found.best->took_ms : 0;
    autotune::Winner winner =
        before > 0 ? autotune::Winner{found.best->config, found.best->found_by, found.best->timings, before}
                   : checked(autotune::enumerate(bench, wanted.space, rules, clock));
    if (wanted.search == autotune::SearchMethod::coordinate_descent)
        winner = checked(autotune::descend(bench, wanted.space, rules, clock, std::move(winner)));
    std::vector<std::pair<Digest, double>> programs;
    if (before > 0) programs = found.best->programs;
    for (const TunedConfig& config : {shared.kernel.candidates.front(), winner.config}) {
        bench.keep(config);
        const auto compiled = bench.compiled(config);
        const auto is_it = [&](const auto& known) { return known.first == compiled->first; };
        if (compiled && programs.size() < autotune::k_most_kept_programs && std::ranges::none_of(programs, is_it))
            programs.push_back(*compiled);
    }
    {
        const std::scoped_lock lock{shared.mutex};
        shared.proven.insert(winner.config); // a winner was always compared with the default
    }
    const std::scoped_lock lock{counting};
    ++counts.tuned;
    counts.tuning_ms += winner.took_ms - before;
    return {shared.kernel.name,
            wanted.key,
            autotune::configs_hash(wanted.space.candidates),
            winner.config,
            winner.found_by,
            winner.took_ms,
            std::move(winner.timings),
            shared.kernel.problem,
            shared.device,
            wanted.driver,
            to_iso8601(clock.wall()),
            std::move(programs)};
}

void Tuner::Impl::keep(const autotune::BestConfig& best)
{
    log().info("tuned {}: {} ({}), {:.2f} times as fast as the default, in {}", best.kernel,
               autotune::to_text(best.config), to_string(best.found_by), autotune::gain(best), time_text(best.took_ms));
    if (const auto put = library->put(best); !put)
        return fault("write", fmt::format("the tuned configuration of '{}'", best.kernel), put.error());
    cache.touched.note(name_of(best));
    cache.store->make_room();
}

void Tuner::Impl::fault(std::string_view doing, std::string_view of, const Error& error)
{
    log().warn("cannot {} {}: {}", doing, of, error.message);
    const std::scoped_lock lock{counting};
    ++counts.faults;
}

void Tuner::Impl::miss(const TunedKernel& shared, const std::string& reason, std::string_view word)
{
    log().info("no tuned configuration of {}: {}", shared.kernel.name, reason);
    const std::scoped_lock lock{counting};
    ++counts.misses;
    store::FunctionUsage usage;
    usage.misses = 1;
    usage.events = store::one_event(store::EventKind::miss, word);
    cache.store->add_usage_soon(store::ArtifactKind::tuned, usage);
    if (counts.miss_reasons.size() < k_most_tuning_reasons)
        counts.miss_reasons.push_back(fmt::format("{}: {}", shared.kernel.name, reason));
}

TuningStatistics Tuner::Impl::statistics() const
{
    const std::scoped_lock lock{counting};
    return counts;
}

void Tuner::Impl::discard(const TunedKernel& shared, const TunedConfig& config)
{
    cache.touched.forget({store::ArtifactKind::tuned, shared.wanted.key});
    if (!library || !why_not_written().empty()) return;
    const auto stored = library->find(shared.wanted.key);
    if (!stored || !*stored || (*stored)->config != config) return;
    if (const auto removed = library->remove(shared.wanted.key); !removed)
        fault("remove", of_kernel(shared), removed.error());
}

void Tuner::Impl::validate(TunedKernel& shared, const TunedConfig& config)
{
    const std::scoped_lock lock{shared.mutex};
    const TunedConfig& standard = shared.kernel.candidates.front();
    if (config == standard || shared.proven.contains(config)) return;
    if (current_run() != nullptr)
        raise(
            {ErrorCode::invalid_argument, fmt::format("kernel '{}' is validated while a wrapped function runs: name it "
                                                      "in Spec::tuned, or call Tuned::validate before the function",
                                                      shared.kernel.name)});
    std::string wrong = "it was rejected before in this process";
    if (!shared.rejected.contains(config)) {
        TuningBench bench{device, shared.kernel, options.batch_ms, clock, {cache.programs, cache.policy}};
        if (auto prepared = bench.prepare(standard); !prepared)
            raise(within(fmt::format("kernel '{}', default configuration", shared.kernel.name), prepared.error())
                      .error());
        auto run = bench.prepare(config);
        if (!run && run.error().code == ErrorCode::miss_forbidden) // this error says nothing about the configuration
            raise(within(fmt::format("kernel '{}'", shared.kernel.name), run.error()).error());
        auto difference = run ? bench.difference(config) : std::unexpected(run.error());
        if (difference && !*difference) {
            shared.proven.insert(config);
            bench.keep(standard);
            bench.keep(config);
            return;
        }
        wrong = difference ? **difference : difference.error().message;
        shared.rejected.insert(config);
        log().warn("the tuned configuration '{}' of '{}' is rejected, the default is used: {}",
                   autotune::to_text(config), shared.kernel.name, wrong);
        discard(shared, config);
        const std::scoped_lock counted{counting};
        ++counts.rejected;
    }
    raise({ErrorCode::verification_failed,
           fmt::format(
               "the tuned configuration '{}' of kernel '{}' does not give the results of the default '{}': {}; it is "
               "not used any more: call Tuner::tune again, which returns the default, and build the programs again",
               autotune::to_text(config), shared.kernel.name, autotune::to_text(standard), wrong)});
}

/// Whether the configuration may be used now. Validates it if the options ask for validation at once; otherwise returns
/// true.
bool Tuner::Impl::is_proven(TunedKernel& shared, const TunedConfig& config)
try {
    if (options.validation == TuningValidation::at_once) validate(shared, config);
    return true;
} catch (const Exception& error) {
    if (error.code() != ErrorCode::verification_failed) throw;
    return false; // validate() logged the error
}

std::vector<std::string> Tuner::Impl::reload()
{
    std::vector<std::string> changed;
    const std::scoped_lock lock{mutex};
    if (!library || cache.policy == Policy::refresh) return changed;
    for (const auto& [key, shared] : kernels) {
        if (!shared->current) continue;
        auto stored = library->find(shared->wanted.key);
        if (!stored) fault("read", of_kernel(*shared), stored.error());
        if (!stored || !*stored) continue;
        if (autotune::judge(**stored, shared->wanted).use != autotune::WinnerVerdict::Use::winner) continue;
        if (has_rejected(*shared) || (*stored)->config == shared->current->config) continue;
        if (!is_proven(*shared, (*stored)->config)) continue;
        shared->current = report_of(**stored, TuningOutcome::stored, "");
        shared->best = std::move(**stored);
        changed.push_back(shared->kernel.name);
    }
    return changed;
}

} // namespace warmgraph
