#include <algorithm>
#include <atomic>

#include "function_impl.hpp"
#include "stream_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph {

std::string_view to_string(Outcome outcome) noexcept
{
    switch (outcome) {
    case Outcome::recorded: return "recorded";
    case Outcome::replayed: return "replayed";
    case Outcome::eager: return "eager";
    case Outcome::refused: return "refused";
    }
    return "unknown";
}

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

/// In a folder that could only be opened to be read, or without a key that signs what must be signed. Who asks for a
/// refresh wants nothing that is stored: the function runs.
Policy possible_policy(const Cache::Impl& cache, Policy wanted, bool has_callable)
{
    if (!cache.store || (cache.store->why_read_only().empty() && cache.may_publish())) return wanted;
    if (wanted == Policy::refresh && has_callable) return Policy::off;
    const bool records = wanted == Policy::read_write || wanted == Policy::refresh || wanted == Policy::no_compile;
    return records ? Policy::read_only : wanted;
}

/// Graphs alone may be off: the function runs then as it is, and its programs are kept.
Policy graph_policy(const Cache::Impl& cache, Policy possible) noexcept
{
    return cache.kinds.graphs ? possible : Policy::off;
}

/// Also where nothing can be recorded, nothing may be compiled.
Policy program_policy(Policy wanted, Policy possible) noexcept
{
    return wanted == Policy::no_compile ? wanted : possible;
}

} // namespace

Function::Impl::Impl(std::shared_ptr<Cache::Impl> cache, std::string name, std::shared_ptr<Device::Impl> device,
                     Spec spec, Interface interface, Callable callable, const void* code,
                     std::unique_ptr<HalfContext> half)
    : m_cache(std::move(cache)),
      m_half(std::move(half)),
      m_shelf(m_half ? m_half->shelf : std::make_shared<Shelf>(*m_cache)),
      m_name(std::move(name)),
      m_device(std::move(device)),
      m_spec(std::move(spec)),
      m_interface(std::move(interface)),
      m_callable(std::move(callable)),
      m_code(code),
      m_policy(graph_policy(
          *m_cache, possible_policy(*m_cache, m_spec.policy.value_or(m_cache->policy), static_cast<bool>(m_callable)))),
      m_key(m_cache->key(m_half ? m_half->pair : m_name, *m_device->device)),
      m_reader(m_interface, m_device->device->ordinal(),
               m_device->device->limits().flat_addresses ? Addressing::flat : Addressing::by_base),
      m_streams(m_device->device),
      m_programs{m_cache->programs, program_policy(m_spec.policy.value_or(m_cache->policy),
                                                   possible_policy(*m_cache, m_spec.policy.value_or(m_cache->policy),
                                                                   static_cast<bool>(m_callable)))},
      m_runnable{m_name, m_interface, m_callable, m_device->device, m_streams, &m_programs},
      m_subject{m_name, m_interface, m_device->device, {}, declared_handles(m_spec), next_number()},
      m_scratch(m_device->device, ScratchPool::Kind::memory),
      m_last(m_half ? m_half->last : std::make_shared<LastStream>()),
      m_most_variants(m_cache->options.max_variants),
      m_registrations(m_device->device->registrations()),
      m_exposures(m_device->device->exposures())
{
    m_report.function = m_name;
    m_label = fmt::format("{}/{}", m_cache->options.model, m_key.function);
    begin_counting();
    if (m_spec.buckets.empty()) return;
    m_padding = std::make_unique<Padding>(m_spec, m_interface, *m_device->device);
    if (!m_is_counted) m_padding->learn_nothing();
}

Function::Impl::~Impl()
{
    if (!m_profile) return; // nothing was counted
    m_counter.tell(*m_profile);
    m_cache->profiles->note(m_profile);
}

void Function::Impl::retire() noexcept
{
    m_is_retired = true;
    const std::scoped_lock lock{m_cache->mutex};
    m_cache->functions.erase(m_name); // the name may be wrapped again
}

std::string Function::Impl::label() const
{
    return fmt::format("{}/{}/{}", m_cache->options.model, m_key.rank, m_name);
}

void Function::Impl::cache_fault(std::string_view doing, const Error& error) const
{
    m_cache->counters.cache_fault();
    log().warn("{}: {} failed{}: {}", label(), doing, m_callable ? ", the function runs as it is" : "", error.message);
}

/// Launches of one function share its scratch and arena, so a launch in another stream comes after the last one.
void Function::Impl::order_after_last(const std::shared_ptr<backends::Stream>& stream)
{
    auto& last = m_last->stream;
    if (last == stream) return;
    // Somebody captures the last one: an event of it would draw `stream` into that capture, and its work with it.
    if (last && last->is_capturing()) {
        log().debug("{}: its last stream is being captured, and this call is not ordered after it", label());
    } else if (last) {
        const auto event = last->record_event();
        const auto ordered = event ? stream->wait(*event) : Result<void>{std::unexpected(event.error())};
        if (!ordered) { // the host waits instead
            log().warn("{}: its last stream is waited for: {}", label(), ordered.error().message);
            value_or_raise(last->synchronize());
        }
    }
    last = stream;
}

RunContext Function::Impl::run_eagerly(const std::shared_ptr<backends::Stream>& stream, Phases& phases)
{
    order_after_last(stream);
    m_served.reset();
    RunContext context;
    context.function = m_name;
    context.phases = &phases;
    const RunInputs inputs{m_frame.tensors, m_frame.memory, m_frame.scalars, m_frame.values};
    const std::scoped_lock lock{m_callable_mutex};
    run(m_runnable, inputs, m_scratch, stream, context);
    return context;
}

/// The caller captures the stream: the callable's work becomes part of his graph. Nothing is waited for, looked up or
/// recorded, and the scratch stays his graph's for as long as the function lives.
Outcome Function::Impl::run_into_capture(const std::shared_ptr<backends::Stream>& stream)
{
    if (!m_callable)
        raise({ErrorCode::unsupported,
               fmt::format("'{}' has no callable that could run in a capture of the caller's: call it outside",
                           label())});
    m_served.reset();
    RunContext context;
    context.function = m_name;
    const RunInputs inputs{m_frame.tensors, m_frame.memory, m_frame.scalars, m_frame.values};
    auto& scratch = m_captured_scratch.emplace_back(m_device->device, ScratchPool::Kind::memory);
    const std::scoped_lock lock{m_callable_mutex};
    // Calls that he made before to warm it up may all have been replays: then this is its first run in the process.
    const auto allowed = stream->allow_first_run();
    run(m_runnable, inputs, scratch, stream, context);
    return Outcome::eager;
}

/// After a replay that failed: it is counted and explained, and the next call loads anew. Without a callable the
/// failure is the caller's to know.
Outcome Function::Impl::run_instead(Variants::iterator failed, const Error& failure,
                                    const std::shared_ptr<backends::Stream>& stream)
{
    cache_fault("replay", failure);
    const Digest digest = failed->guards_digest;
    m_variants.erase(failed);
    if (!m_callable)
        raise(within(fmt::format("{} has no callable that could run instead of its graph", label()), failure).error());
    m_report.outcome = Outcome::eager;
    m_report.reason = failure.message;
    m_report.entry = short_hex(digest);
    m_report.phases.clear();
    m_report.first_call_ms = 0;
    Phases unmeasured;
    run_eagerly(stream, unmeasured);
    return Outcome::eager;
}

Result<void> Function::Impl::launch(LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream,
                                    replay::AskedCapture asked)
{
    order_after_last(stream);
    const std::size_t regions = variant.executable->graph().regions.size();
    m_bindings.regions.resize(regions);
    std::ranges::copy(m_frame.memory, m_bindings.regions.begin());
    m_bindings.scalars.assign(m_frame.scalars.begin(), m_frame.scalars.end());
    auto launched = variant.executable->launch(*stream, m_bindings, asked);
    if (launched)
        note_launch(variant, *stream);
    else
        variant.mark.reset();
    // The function cannot be run instead: the part that was enqueued would happen twice.
    if (!launched && launched.error().code == ErrorCode::partly_launched)
        raise(within(label(), launched.error()).error());
    return launched;
}

Outcome Function::Impl::call(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args,
                             replay::AskedCapture asked)
{
    return call(stream, args, Counted::yes, asked);
}

Outcome Function::Impl::call(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args,
                             Counted counted, replay::AskedCapture asked)
{
    if (RunContext* running = current_run()) refuse_nested_call(*running);
    std::unique_ptr<Job> job;
    Outcome outcome = Outcome::eager;
    {
        std::unique_lock<std::mutex> everybodys;
        if (stream == m_device->default_stream) everybodys = std::unique_lock{m_device->default_stream_mutex};
        const std::scoped_lock lock{m_mutex};
        outcome = call_locked(stream, args, counted, asked, job);
    }
    // The caller has his answer on its way; other threads may call meanwhile.
    return job ? complete(*job) : outcome;
}

Outcome Function::Impl::call_locked(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args,
                                    Counted counted, replay::AskedCapture asked, std::unique_ptr<Job>& job)
{
    value_or_raise(m_reader.read(args, m_frame));
    if (m_half) value_or_raise(m_half->check(m_frame));
    if (asked == replay::AskedCapture::no && stream->is_capturing()) {
        if (m_padding) refuse_unpadded();
        return run_into_capture(stream);
    }
    if (m_half && m_half->runs_as_it_is()) return run_unused(stream, "its forward runs as it is");
    if (m_padding) return call_padded(stream, counted, job);
    if (counted == Counted::yes) count_call(nullptr);
    return call_read(stream, job);
}

/// The call in m_frame.
Outcome Function::Impl::call_read(const std::shared_ptr<backends::Stream>& stream, std::unique_ptr<Job>& job)
{
    notice_changes();
    const guards::Others others = m_padding ? guards::Others{} : m_reader.others(); // padding changes what was read
    for (auto variant = m_variants.begin(); variant != m_variants.end(); ++variant) {
        if (m_half && variant->forward != m_half->forward) continue;
        if (!variant->guard.matches(m_frame.tensors, m_frame.values, others)) continue;
        if (variant->use != LoadedVariant::Use::replayed) return run_unused(*variant, stream);
        if (variant->unused) return first_use(variant, stream, job);
        ++variant->calls;
        if (is_to_verify(*variant)) {
            Journey journey;
            journey.started = system_clock().steady();
            describe_call(journey);
            LoadedVariant verified = std::move(*variant);
            m_variants.erase(variant);
            return answer_and_verify(std::move(verified), journey, stream, job);
        }
        auto launched = launch(*variant, stream, replay::AskedCapture::yes);
        // A variant for memory elsewhere (host or device), which is asked for only where it matters.
        if (!launched && launched.error().code == ErrorCode::stale) continue;
        if (!launched) return run_instead(variant, launched.error(), stream);
        if (variant != m_variants.begin()) m_variants.splice(m_variants.begin(), m_variants, variant);
        m_served = {variant->guards_digest, false};
        m_cache->note_replay();
        return Outcome::replayed;
    }
    return first_call(stream, "", job);
}

/// Of calls that are replayed: none (first calls are another matter), or each Nth.
bool Function::Impl::is_to_verify(const LoadedVariant& variant) const noexcept
{
    const std::uint64_t every = m_cache->verify_every;
    return every != 0 && m_callable != nullptr && variant.calls % every == 0 && !has_pending();
}

void Function::Impl::forget_loaded(std::string_view why)
{
    const auto gone = std::erase_if(m_variants, [](const LoadedVariant& variant) { return variant.only_here; });
    if (gone != 0) log().warn("{}: what was adopted and could not be published is dropped, for {}", label(), why);
    m_variants.clear();
    m_verdicts.clear();
}

/// What guards depend on and no argument tells.
void Function::Impl::notice_changes()
{
    if (const auto registrations = m_device->device->registrations(); registrations != m_registrations) {
        // What is loaded may have to run another module, and what was refused may be known now.
        forget_loaded("a module was registered since: register modules before adopting");
        m_registrations = registrations;
    }
    if (const auto exposures = m_device->device->exposures(); exposures != m_exposures) {
        forget_exposed();
        m_exposures = exposures;
    }
    if (m_spec.environment.empty()) return;
    auto now = environment_of(m_spec);
    if (now == m_environment) return;
    if (!m_environment.empty()) {
        forget_loaded("an environment variable that it lists changed since");
        m_facts.clear();
    }
    m_environment = std::move(now);
}

/// Before any lock is taken: the outer call holds the very locks that the inner one would wait for.
void Function::Impl::refuse_nested_call(const RunContext& running) const
{
    raise({ErrorCode::invalid_argument,
           fmt::format("'{}' is called inside '{}': enqueue its work there instead", m_name, running.function)});
}

/// Likewise. Another function's callable may do so.
void Function::Impl::refuse_inside_itself(std::string_view what) const
{
    const RunContext* const running = current_run();
    if (running == nullptr || running->function != m_name) return;
    raise({ErrorCode::invalid_argument,
           fmt::format("'{}' is {} inside its own callable: do it before or after the call", m_name, what)});
}

LoadedVariant Function::Impl::variant_of(const cachefmt::Guards& guards, const Digest& digest,
                                         std::unique_ptr<replay::Executable> executable) const
{
    LoadedVariant variant{guards::CallGuard{guards.tensors, guards.values, m_device->device->ordinal()},
                          std::move(executable), digest};
    const auto forward = std::ranges::find(guards.facts, cachefmt::k_forward_fact, &cachefmt::Fact::name);
    if (m_half && forward != guards.facts.end()) variant.forward = digest_from_hex(forward->value);
    return variant;
}

void Function::Impl::keep(LoadedVariant variant)
{
    m_served = {variant.guards_digest, variant.use == LoadedVariant::Use::waits};
    m_variants.push_front(std::move(variant));
    if (m_variants.size() > m_most_variants) m_variants.pop_back();
}

void Function::Impl::bind(std::string_view state, const MemoryRef& memory)
{
    refuse_inside_itself("bound");
    const std::scoped_lock lock{m_mutex};
    const auto region = m_interface.region(state);
    const bool is_state = region && (m_interface.regions[*region].kind == cachefmt::RegionKind::state ||
                                     m_interface.regions[*region].kind == cachefmt::RegionKind::weights);
    if (!is_state)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' has no state '{}': inputs and outputs are given in the call", m_name, state)});
    if (memory.size != m_interface.regions[*region].memory.size)
        raise({ErrorCode::invalid_argument, fmt::format("state '{}' has {} bytes, expected {} as declared", state,
                                                        memory.size, m_interface.regions[*region].memory.size)});
    m_reader.bind_state(*region, memory);
}

Report Function::Impl::report() const
{
    refuse_inside_itself("asked for its report");
    const std::scoped_lock lock{m_mutex};
    return m_report;
}

// --- the public class

Function::Function(std::shared_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&& other) noexcept
{
    std::swap(m_impl, other.m_impl);
    return *this;
}
Function::~Function()
{
    if (m_impl) m_impl->retire();
}

// The callable may destroy the function, and the stream: both stay until the call ends.

Outcome Function::call(std::span<const Arg> args)
{
    const auto impl = m_impl;
    return impl->call(impl->default_stream(), args);
}
Outcome Function::call(Stream& stream, std::span<const Arg> args)
{
    const auto impl = m_impl;
    const auto target = StreamAccess::impl(stream).stream;
    return impl->call(target, args);
}
Outcome Function::call_uncaptured(Stream& stream, std::span<const Arg> args)
{
    const auto impl = m_impl;
    const auto target = StreamAccess::impl(stream).stream;
    return impl->call(target, args, replay::AskedCapture::yes);
}
void Function::bind(std::string_view state, const MemoryRef& memory) { m_impl->bind(state, memory); }
Report Function::report() const { return m_impl->report(); }
std::vector<Miss> Function::misses() const { return m_impl->misses(); }
std::vector<ProfiledShape> Function::shapes() const { return m_impl->shapes(); }
std::vector<std::vector<std::int64_t>> Function::buckets() const { return m_impl->buckets(); }

} // namespace warmgraph
