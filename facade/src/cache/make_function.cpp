// Makes functions: takes from a cache the objects that the parts of a function need. Only this file knows both the
// cache and the parts.
#include "cache/make_function.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "cache/cache_impl.hpp"
#include "pairs/pair_impl.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/call/function_impl.hpp"
#include "warmgraph/capture/clear_stack.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

DeclaredHandles declared_handles(const Spec& spec)
{
    DeclaredHandles result;
    for (const auto& [name, event] : spec.events)
        result.events.emplace_back(name, reinterpret_cast<std::uintptr_t>(event));
    for (const auto& [name, semaphore] : spec.semaphores)
        result.semaphores.emplace_back(name, reinterpret_cast<std::uintptr_t>(semaphore));
    return result;
}

std::uint64_t next_number() noexcept
{
    static std::atomic<std::uint64_t> s_last = 0;
    return ++s_last;
}

/// Returns the policy that is possible. Policies that record need a writable folder, and a signing key if signatures
/// are required. If one of these is missing, `refresh` becomes `off`, because the caller does not want stored graphs.
Policy possible_policy(const Cache::Impl& cache, Policy wanted, bool has_callable)
{
    if (!cache.store || (cache.store->why_read_only().empty() && cache.settings.may_publish())) return wanted;
    if (wanted == Policy::refresh && has_callable) return Policy::off;
    const bool records = wanted == Policy::read_write || wanted == Policy::refresh || wanted == Policy::no_compile;
    return records ? Policy::read_only : wanted;
}

Lookup::Sources lookup_sources(Cache::Impl& cache, const PairRole* role)
{
    return {cache.store,
            cache.settings.disabled_reason,
            cache.settings.kinds.contains(store::ArtifactKind::entries),
            cache.settings.relaxation,
            cache.image_source(),
            role != nullptr ? std::optional{role->part} : std::nullopt,
            cache.counters,
            cache.preload.state,
            cache.modules};
}

CallOutcomes::Sinks outcome_sinks(Cache::Impl& cache)
{
    return {cache.store,
            cache.programs,
            cache.counters,
            cache.pause,
            cache.touched,
            [&cache] { cache.note_replay(); },
            cache.settings.options.max_variants};
}

Publisher::Sinks publisher_sinks(Cache::Impl& cache, const PairRole* role)
{
    return {cache.store,
            role != nullptr ? role->entries : nullptr,
            role != nullptr ? std::optional{role->part} : std::nullopt,
            cache.settings.disabled_reason,
            cache.programs,
            cache.touched,
            cache.counters};
}

RecordJobs::Settings record_settings(const CacheOptions& options)
{
    return {options.record, std::chrono::milliseconds{options.probing_ms},
            std::chrono::milliseconds{options.record_wait_ms}};
}

Surroundings::Gather facts_of(Cache::Impl& cache, const std::shared_ptr<const Declaration>& its, const PairRole* role)
{
    return [&cache, its, role] {
        const auto& device = *its->backend();
        if (role != nullptr) {
            auto facts = gather_facts(cache, role->pair, its->spec, device, role->interface, its->code);
            facts.insert(facts.end(), role->facts.begin(), role->facts.end());
            guards::canonicalize(facts);
            return facts;
        }
        return gather_facts(cache, its->name, its->spec, device, its->interface.text(), its->code);
    };
}

} // namespace

std::shared_ptr<Function::Impl> make_function(const std::shared_ptr<Cache::Impl>& cache, std::string name,
                                              const std::shared_ptr<Device::Impl>& device, Spec spec,
                                              Interface interface, Callable callable, const void* code,
                                              std::unique_ptr<PairRole> role)
{
    auto its = std::make_shared<Declaration>();
    const Policy wanted = spec.policy.value_or(cache->settings.policy);
    const Policy possible = possible_policy(*cache, wanted, static_cast<bool>(callable));
    // Only graphs may be switched off: the function then runs without a graph, and its programs are still stored.
    its->policy = cache->settings.kinds.contains(store::ArtifactKind::entries) ? possible : Policy::off;
    its->publishes = cache->store && (its->policy == Policy::read_write || its->policy == Policy::refresh ||
                                      its->policy == Policy::no_compile);
    // If the policy is no_compile, programs are not compiled even if nothing can be recorded.
    its->programs = {cache->programs, wanted == Policy::no_compile ? wanted : possible};
    its->key = cache->settings.key(role ? role->pair : name, *device->device);
    its->label = fmt::format("{}/{}", cache->settings.options.model, its->key.function);
    its->path = fmt::format("{}/{}/{}", cache->settings.options.model, its->key.rank, name);
    its->verifies_first = cache->settings.verifies_first;
    its->verify_every = cache->settings.verify_every;
    its->name = std::move(name);
    its->handles = declared_handles(spec);
    its->spec = std::move(spec);
    its->interface = std::move(interface);
    its->callable = std::move(callable);
    its->code = code;
    its->device = device;
    its->number = next_number();
    return std::make_shared<Function::Impl>(cache, std::move(its), std::move(role));
}

namespace {

/// Locks the mutex. Returns a lock that is not locked if `stop` came first: a call may hold the mutex while its
/// callable exits the process, and the exit waits for this thread.
std::unique_lock<std::mutex> lock_unless(std::mutex& mutex, const std::stop_token& stop)
{
    std::unique_lock lock{mutex, std::try_to_lock};
    while (!lock && !stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::microseconds{100});
        static_cast<void>(lock.try_lock());
    }
    return lock;
}

class WrappedImpl final : public WrappedFunction {
public:
    explicit WrappedImpl(const std::shared_ptr<Function::Impl>& function)
        : WrappedFunction(function->declaration), m_function(function)
    {
    }
    [[nodiscard]] bool exists() const override { return !m_function.expired(); }
    [[nodiscard]] bool is_settled() const override
    {
        const auto function = m_function.lock();
        return !function || function->outcomes.is_settled();
    }
    std::size_t record_pending() const override
    {
        const auto function = m_function.lock();
        return function ? function->record_pending() : 0;
    }
    [[nodiscard]] std::vector<PreloadCandidate> preload_candidates() const override
    {
        const auto function = m_function.lock();
        if (!function || !function->lookup.may_have_candidates()) return {};
        return function->lookup.candidates(function->surroundings.gather());
    }
    [[nodiscard]] std::optional<PreloadClient> preload_for(const Digest& entry,
                                                           const std::stop_token& stop) const override
    {
        const auto function = m_function.lock();
        if (!function) return std::nullopt;
        const auto lock = lock_unless(function->mutex, stop);
        if (!lock || function->loaded.find(entry) != function->loaded.end()) return std::nullopt;
        return PreloadClient{declaration().number, declaration().handles, function->arguments.default_memory(),
                             [whose = m_function](const cachefmt::EntryHeader& header, const cachefmt::Graph& graph) {
                                 const auto living = whose.lock();
                                 return living ? living->lookup.check_stored(header, graph) : Result<void>{};
                             }};
    }
    void note_preload_failure(const Error& error) const override
    {
        if (const auto function = m_function.lock()) function->lookup.note_failure("preload", error);
    }

private:
    std::weak_ptr<Function::Impl> m_function;
};

} // namespace

std::shared_ptr<const WrappedFunction> as_wrapped(const std::shared_ptr<Function::Impl>& function)
{
    return std::make_shared<const WrappedImpl>(function);
}

Function::Impl::Impl(std::shared_ptr<Cache::Impl> its_cache, std::shared_ptr<const Declaration> its_declaration,
                     std::unique_ptr<PairRole> its_role)
    : cache(std::move(its_cache)),
      declaration(std::move(its_declaration)),
      role(std::move(its_role)),
      arguments(declaration),
      runner(declaration, role ? role->last : std::make_shared<LastStream>()),
      loaded(declaration, cache->store, cache->settings.options.max_variants),
      surroundings(declaration, facts_of(*cache, declaration, role.get())),
      lookup(declaration, lookup_sources(*cache, role.get())),
      jobs(declaration, Publisher{declaration, publisher_sinks(*cache, role.get())}, cache->programs, cache->modules,
           cache->counters, record_settings(cache->settings.options)),
      // Pairs have no profile, because they record nothing in advance.
      shapes(declaration, role ? nullptr : cache->profiles.get()),
      outcomes(declaration, outcome_sinks(*cache))
{
}

void require_version(std::string_view doing, const std::string& name, const Spec& spec)
{
    if (spec.version.empty() && spec.recorded_code.empty())
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' is {} without a callable, so only Spec::version can identify the recorded code: give "
                           "the version with which it was, or will be, recorded",
                           name, doing)});
}

namespace {

/// Throws if a function that is recorded or adopted here takes its code's identity from an entry.
void refuse_recorded_code(const std::string& name, const Spec& spec)
{
    if (!spec.recorded_code.empty())
        raise({ErrorCode::invalid_argument, fmt::format("'{}' is recorded here, but Spec::recorded_code is only for "
                                                        "functions that are loaded: leave it empty, or use Cache::load",
                                                        name)});
}

} // namespace

Function Cache::make_function(std::string name, const Device& device, Spec spec, Callable callable, const void* code)
{
    auto interface = value_or_raise(interface_of(spec));
    value_or_raise(check_buckets(spec, interface));
    m_impl->fit.tell(m_impl->settings, m_impl->store.get(), *DeviceAccess::impl(device)->device);
    DeviceAccess::impl(device)->use_programs({m_impl->programs, m_impl->settings.policy});
    m_impl->functions.claim(name);
    auto impl = warmgraph::make_function(m_impl, name, DeviceAccess::impl(device), std::move(spec),
                                         std::move(interface), std::move(callable), code, nullptr);
    m_impl->functions.set(name, as_wrapped(impl));
    return Function{std::move(impl)};
}

Function Cache::wrap_code(std::string name, const Device& device, Spec spec, Callable callable, const void* code)
{
    value_or_raise(cachefmt::check_name("function name", name));
    if (!callable) raise({ErrorCode::invalid_argument, fmt::format("'{}' wraps an empty callable", name)});
    refuse_recorded_code(name, spec);
    return make_function(std::move(name), device, std::move(spec), std::move(callable), code);
}

Pair Cache::wrap_pair_code(std::string name, const Device& device, PairSpec spec, Callable forward, Callable backward,
                           const void* forward_code, const void* backward_code)
{
    value_or_raise(cachefmt::check_name("pair name", name));
    if (!forward || !backward)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' wraps an empty {}", name, forward ? "backward" : "forward")});
    const auto& target = DeviceAccess::impl(device);
    m_impl->fit.tell(m_impl->settings, m_impl->store.get(), *target->device);
    const auto make_one = [this, &target](std::string its_name, Spec its_spec, Interface interface, Callable callable,
                                          const void* code, std::unique_ptr<PairRole> role) {
        return warmgraph::make_function(m_impl, std::move(its_name), target, std::move(its_spec), std::move(interface),
                                        std::move(callable), code, std::move(role));
    };
    auto entries = std::make_shared<PairEntries>(m_impl->store, m_impl->touched, m_impl->settings.options.max_variants);
    return Pair{Pair::Impl::make({m_impl->functions, std::move(entries), target, make_one}, std::move(name),
                                 std::move(spec), std::move(forward), std::move(backward), forward_code,
                                 backward_code)};
}

Function Cache::load(std::string name, const Device& device, Spec spec)
{
    value_or_raise(cachefmt::check_name("function name", name));
    require_version("loaded", name, spec);
    return make_function(std::move(name), device, std::move(spec), {}, nullptr);
}

namespace {

void check_adoption(const std::string& name, const Device& device, const Spec& spec, const Adoption& adoption)
{
    value_or_raise(cachefmt::check_name("function name", name));
    require_version("adopted", name, spec);
    refuse_recorded_code(name, spec);
    // In an adopted graph only a semaphore's value can follow a scalar, and only two captures can show this.
    const bool has_second = adoption.second || !adoption.captures.empty();
    if (adoption.second && !adoption.captures.empty())
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' has a second capture and also the folder {} of captures: give only one of them", name,
                           adoption.captures)});
    if (!spec.scalars.empty() && (adoption.first.scalars.empty() || !has_second))
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' declares the scalar '{}', but a capture of an adopted graph cannot show where it "
                           "goes: declare it in Spec::values (one variant for each value); or, if a semaphore's value "
                           "follows it, give two captures with different NativeCapture::scalars",
                           name, spec.scalars.front().name)});
    for (const NativeCapture* capture : {&adoption.first, adoption.second ? &*adoption.second : &adoption.first})
        if (capture->graph == nullptr)
            raise({ErrorCode::invalid_argument,
                   fmt::format("the graph of '{}' is null: pass the captured CUgraph", name)});
    for (const auto& [of, number] : adoption.values) value_or_raise(check_number(of, number));
    const auto& backend = DeviceAccess::impl(device)->device;
    if (!backend->limits().flat_addresses)
        raise({ErrorCode::unsupported, fmt::format("'{}' cannot be adopted, because {} cannot use graphs that another "
                                                   "library captured: record it with Cache::wrap",
                                                   name, backend->id())});
}

} // namespace

Function Cache::adopt(std::string name, const Device& device, Spec spec, const Adoption& adoption)
{
    check_adoption(name, device, spec, adoption);
    Function function = make_function(std::move(name), device, std::move(spec), {}, nullptr);
    function.m_impl->adopt(adoption);
    return function;
}

std::string Cache::write_capture(std::string name, const Device& device, Spec spec, const Adoption& adoption)
{
    check_adoption(name, device, spec, adoption);
    if (adoption.captures.empty())
        raise({ErrorCode::invalid_argument,
               fmt::format("the capture of '{}' has no folder to be written to: name one (Adoption::captures)", name)});
    const Function function = make_function(std::move(name), device, std::move(spec), {}, nullptr);
    return function.m_impl->write_capture(adoption);
}

std::size_t Cache::record_pending()
{
    std::size_t recorded = 0;
    for (const auto& function : m_impl->functions.living()) recorded += function->record_pending();
    return recorded;
}

ProfileRecording Cache::record_profile(Function& function, const MakeArguments& make, std::size_t most)
{
    const auto impl = function.m_impl; // keeps the object: the callable may destroy the function
    const Declaration& its = *impl->declaration;
    const auto refused = [&](std::string_view why) {
        raise({ErrorCode::invalid_argument, fmt::format(fmt::runtime(why), its.name)});
    };
    refuse_inside_itself(its.name, "recorded");
    if (impl->cache != m_impl) refused("'{}' is a function of another cache: call that cache");
    if (!its.callable) refused("'{}' was loaded without a callable, so it cannot be recorded: use Cache::wrap");
    if (!make) refused("the function that makes the arguments of '{}' is empty: pass one");
    std::vector<ProfiledShape> shapes;
    {
        const auto lock = impl->lock("recorded");
        ProfileRecording nothing;
        if (!m_impl->store)
            nothing.why_not = "caching is off: " + m_impl->settings.disabled_reason;
        else if (!impl->shapes.is_counted())
            nothing.why_not = "no profile is kept (CacheOptions::profile, WARMGRAPH_PROFILE)";
        else if (!its.publishes)
            nothing.why_not = "the policy or the folder does not let it record";
        if (!nothing.why_not.empty()) return nothing;
        shapes = impl->shapes.to_record();
    }
    const std::size_t limit = most != 0 ? most : m_impl->settings.options.max_variants;
    if (shapes.size() > limit) shapes.resize(limit);
    return impl->record(shapes, make);
}

Function::~Function()
{
    if (m_impl) retire(*m_impl);
}

void retire(Function::Impl& function) noexcept
{
    function.runner.retire();
    function.cache->functions.release(function.declaration->name); // the name may be wrapped again
    function.cache->preload.state.graphs.forget(function.declaration->number);
}

void clear_stack() noexcept { capture::clear_stack_below(); }

} // namespace warmgraph
