#include "warmgraph/pair.hpp"

#include <algorithm>
#include <atomic>

#include "cache/make_function.hpp"
#include "pairs/pair_impl.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/device/stream_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

using cachefmt::Part;

// --- the declaration

/// Gives both halves a text that only one Spec has. Throws if the Specs have different texts.
void share_text(std::string& one, std::string& other, std::string_view what, std::string_view pair)
{
    if (one.empty()) one = other;
    if (other.empty()) other = one;
    if (one != other)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' has the {} '{}' in forward and '{}' in backward: both must be equal", pair, what, one,
                           other)});
}

void share_config(Spec& forward, Spec& backward, std::string_view pair)
{
    for (const auto& [name, value] : backward.config) {
        const auto [known, added] = forward.config.emplace(name, value);
        if (known->second != value)
            raise({ErrorCode::invalid_argument,
                   fmt::format(
                       "'{}' has the configuration '{}' as '{}' in forward and as '{}' in backward: both must be equal",
                       pair, name, known->second, value)});
    }
    backward.config = forward.config;
}

template <class T, class Same>
void share_list(std::vector<T>& forward, std::vector<T>& backward, Same same)
{
    for (const T& item : backward)
        if (std::ranges::none_of(forward, [&](const T& known) { return same(known, item); })) forward.push_back(item);
    backward = forward;
}

void share(Spec& forward, Spec& backward, std::string_view pair)
{
    share_text(forward.version, backward.version, "version", pair);
    share_text(forward.metadata, backward.metadata, "metadata", pair);
    share_config(forward, backward, pair);
    share_list(forward.environment, backward.environment, std::equal_to<>{});
    share_list(forward.code, backward.code, [](const Program& one, const Program& other) {
        return one.name() == other.name() && ProgramAccess::source_digest(one) == ProgramAccess::source_digest(other);
    });
    share_list(forward.tuned, backward.tuned, [](const Tuned& one, const Tuned& other) {
        return one.report().kernel == other.report().kernel && one.config() == other.config();
    });
    if (!forward.policy) forward.policy = backward.policy;
    if (!backward.policy) backward.policy = forward.policy;
    if (forward.policy != backward.policy)
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' has another policy in forward than in backward: both must be equal", pair)});
}

void refuse_outside(const Spec& spec, Part part, std::string_view pair)
{
    if (!spec.recorded_code.empty())
        raise({ErrorCode::invalid_argument, fmt::format("'{}' is recorded here, but Spec::recorded_code of its {} is "
                                                        "only for functions that are loaded: leave it empty",
                                                        pair, to_string(part))});
    if (!spec.buckets.empty())
        raise({ErrorCode::unsupported, fmt::format("{} of '{}' declares buckets, but the saved memory of a pair has "
                                                   "one size: wrap one pair for each size",
                                                   to_string(part), pair)});
    if (spec.events.empty() && spec.semaphores.empty()) return;
    raise({ErrorCode::unsupported,
           fmt::format("{} of '{}' declares events or semaphores, which a pair cannot have: wrap it as a function",
                       to_string(part), pair)});
}

std::string shape_text(DType dtype, std::span<const std::int64_t> sizes)
{
    return fmt::format("{} [{}]", to_string(dtype), fmt::join(sizes, ", "));
}

std::string shape_text(const guards::TensorArg& tensor)
{
    return shape_text(tensor.dtype, std::span{tensor.sizes}.first(tensor.rank));
}

/// Returns the text of the guard for the saved memory: "h f32 [4, 8]; mask u8 [4]".
std::string saved_text(const std::vector<TensorDecl>& saved)
{
    std::string text;
    for (const TensorDecl& decl : saved)
        text += fmt::format("{}{} {}", text.empty() ? "" : "; ", decl.name, shape_text(decl.dtype, decl.sizes));
    return text;
}

const RegionDecl& need_region(const Interface& interface, std::string_view name, Part part, std::string_view pair)
{
    const auto found = std::ranges::find(interface.regions, name, &RegionDecl::name);
    if (found == interface.regions.end())
        raise({ErrorCode::invalid_argument,
               fmt::format("gradients of '{}' names '{}', which {} does not declare", pair, name, to_string(part))});
    return *found;
}

SameShape same_shape(const Interface& forward, const Interface& backward, const RegionDecl& of_forward,
                     const RegionDecl& of_backward, std::string_view pair)
{
    SameShape result{of_forward.name, of_backward.name, static_cast<std::size_t>(&of_forward - forward.regions.data()),
                     static_cast<std::size_t>(&of_backward - backward.regions.data()),
                     of_forward.name == of_backward.name};
    const bool same_type = !result.same_type || of_forward.dtype == of_backward.dtype;
    if (of_forward.sizes != of_backward.sizes || !same_type)
        raise({ErrorCode::invalid_argument,
               fmt::format("the shapes of forward and backward of '{}' do not match: backward declares '{}' as {}, "
                           "forward declares '{}' as {}",
                           pair, result.backward, shape_text(of_backward.dtype, of_backward.sizes), result.forward,
                           shape_text(of_forward.dtype, of_forward.sizes))});
    return result;
}

/// Returns the pairs of tensors that must have the same shape: tensors that both halves name, and gradients with their
/// tensors.
std::vector<SameShape> same_shapes(const PairSpec& spec, const Interface& forward, const Interface& backward,
                                   std::string_view pair)
{
    const auto is_saved = [&](std::string_view name) {
        return std::ranges::find(spec.saved, name, &TensorDecl::name) != spec.saved.end();
    };
    std::vector<SameShape> result;
    for (const RegionDecl& of_backward : backward.regions) {
        const auto of_forward = std::ranges::find(forward.regions, of_backward.name, &RegionDecl::name);
        if (of_forward == forward.regions.end() || is_saved(of_backward.name)) continue;
        result.push_back(same_shape(forward, backward, *of_forward, of_backward, pair));
    }
    for (const auto& [gradient, of] : spec.gradients)
        result.push_back(same_shape(forward, backward, need_region(forward, of, Part::forward, pair),
                                    need_region(backward, gradient, Part::backward, pair), pair));
    return result;
}

std::uint64_t bytes_of(const TensorDecl& decl)
{
    std::uint64_t bytes = size_of(decl.dtype);
    for (const std::int64_t size : decl.sizes)
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return 0;
    return bytes;
}

/// Allocates the arena, filled with zeros.
std::vector<NamedMemory> allocate_saved(ScratchPool& arena, const std::vector<TensorDecl>& saved, std::string_view pair)
{
    std::vector<NamedMemory> result;
    for (const TensorDecl& decl : saved) {
        const std::uint64_t bytes = bytes_of(decl);
        if (bytes == 0 || !decl.strides.empty())
            raise({ErrorCode::invalid_argument, fmt::format("the saved '{}' of '{}' is {}, expected a contiguous one "
                                                            "with at least one element and fewer than 2^64 bytes",
                                                            decl.name, pair, shape_text(decl.dtype, decl.sizes))});
        result.emplace_back(decl.name, value_or_raise(arena.get(decl.name, bytes)));
    }
    return result;
}

void place_saved(Interface& interface, const std::vector<NamedMemory>& saved)
{
    for (const auto& [name, memory] : saved) interface.regions[*interface.region(name)].memory = memory;
}

/// Returns the facts of the pair, in addition to those of its functions. A function's facts identify the binary of
/// forward; backward may come from another binary.
std::vector<cachefmt::Fact> facts_of(const PairSpec& spec, const void* backward_code)
{
    std::vector<cachefmt::Fact> facts{{cachefmt::k_saved_fact, saved_text(spec.saved), cachefmt::Role::must_match}};
    if (spec.forward.version.empty())
        facts.push_back({"code.backward_build_id", build_id_of(backward_code).value_or(cachefmt::k_unknown),
                         cachefmt::Role::must_match});
    return facts;
}

std::uint64_t next_generation() noexcept
{
    static std::atomic<std::uint64_t> s_last = 0;
    return ++s_last;
}

bool overlap(const MemoryRef& one, const MemoryRef& other) noexcept
{
    return one.address.base == other.address.base && one.address.offset < other.address.offset + other.size &&
           other.address.offset < one.address.offset + one.size;
}

/// Claims the names of a pair and its halves in the cache. Releases the names unless the whole pair was made.
class NameClaim {
public:
    NameClaim(FunctionNames& functions, std::string_view pair) : m_functions(functions)
    {
        for (const char* of : {"", ".forward", ".backward"}) {
            std::string name = fmt::format("{}{}", pair, of);
            try {
                functions.claim(name);
            } catch (...) {
                release();
                throw;
            }
            m_names.push_back(std::move(name));
        }
    }
    NameClaim(const NameClaim&) = delete;
    NameClaim& operator=(const NameClaim&) = delete;
    ~NameClaim() { release(); }
    void keep() noexcept { m_names.clear(); }

private:
    void release() noexcept
    {
        for (const auto& name : m_names) m_functions.release(name);
    }
    FunctionNames& m_functions;
    std::vector<std::string> m_names;
};

} // namespace

std::shared_ptr<Pair::Impl> Pair::Impl::make(const PairSources& cache, std::string name, PairSpec spec,
                                             Callable forward, Callable backward, const void* forward_code,
                                             const void* backward_code)
{
    refuse_outside(spec.forward, Part::forward, name);
    refuse_outside(spec.backward, Part::backward, name);
    share(spec.forward, spec.backward, name);
    spec.forward.outputs.insert(spec.forward.outputs.end(), spec.saved.begin(), spec.saved.end());
    spec.backward.inputs.insert(spec.backward.inputs.end(), spec.saved.begin(), spec.saved.end());
    for (const char* value : k_recording_values) spec.backward.values.push_back(scalar(value, DType::u64));
    auto of_forward = value_or_raise(interface_of(spec.forward));
    auto of_backward = value_or_raise(interface_of(spec.backward));

    NameClaim claim{cache.names, name};
    auto pair = std::make_shared<Impl>();
    pair->m_same_shapes = same_shapes(spec, of_forward, of_backward, name);
    pair->m_shapes.resize(pair->m_same_shapes.size());
    const auto arena = std::make_shared<ScratchPool>(cache.device->device, ScratchPool::Kind::memory);
    pair->m_saved = allocate_saved(*arena, spec.saved, name);
    place_saved(of_forward, pair->m_saved);
    place_saved(of_backward, pair->m_saved);

    const auto last = std::make_shared<LastStream>();
    const std::string text = fmt::format("forward: {}; backward: {}", of_forward.text(), of_backward.text());
    const auto facts = facts_of(spec, backward_code);
    const auto role = [&](Part part) {
        return std::make_unique<PairRole>(PairRole{part, name, text, facts, cache.entries, last, arena});
    };
    auto as_forward = role(Part::forward), as_backward = role(Part::backward);
    as_forward->check = [its = pair.get()](const Frame& frame) { return its->check_forward(frame); };
    as_backward->check = [its = pair.get()](const Frame& frame) { return its->check_backward(frame); };
    as_backward->others = [its = pair.get()] { return its->forward_memory(); };
    pair->m_forward = cache.make_function(name + ".forward", std::move(spec.forward), std::move(of_forward),
                                          std::move(forward), forward_code, std::move(as_forward));
    pair->m_backward = cache.make_function(name + ".backward", std::move(spec.backward), std::move(of_backward),
                                           std::move(backward), forward_code, std::move(as_backward));
    cache.names.set(pair->m_forward->declaration->name, as_wrapped(pair->m_forward));
    cache.names.set(pair->m_backward->declaration->name, as_wrapped(pair->m_backward));
    pair->m_names = &cache.names;
    pair->m_name = std::move(name);
    claim.keep();
    return pair;
}

Pair::Impl::~Impl()
{
    if (m_names != nullptr) retire(); // null: the pair was never finished
}

void Pair::Impl::retire() noexcept
{
    if (m_is_retired.exchange(true)) return; // the names may belong to another pair now
    warmgraph::retire(*m_forward);
    warmgraph::retire(*m_backward);
    m_names->release(m_name);
}

// --- a call

std::shared_ptr<backends::Stream> Pair::Impl::stream_of(Stream* stream) const
{
    if (stream == nullptr) return m_forward->declaration->device->default_stream;
    const Stream::Impl& its = StreamAccess::impl(*stream);
    if (its.device != m_forward->declaration->backend())
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' is on {}, and the stream on {}: call it in a stream of its own device", m_name,
                           m_forward->declaration->backend()->id(), its.device ? its.device->id() : "no device")});
    return its.stream;
}

void Pair::Impl::refuse_saved(std::span<const Arg> args) const
{
    for (const Arg& arg : args)
        if (std::ranges::find(m_saved, arg.name, [](const NamedMemory& memory) {
                return std::string_view{memory.first};
            }) != m_saved.end())
            raise({ErrorCode::invalid_argument,
                   fmt::format("'{}' is saved memory of '{}', which the pair passes itself: leave it out", arg.name,
                               m_name)});
}

/// Checks that no argument overlaps the saved memory, which belongs to the pair.
Result<void> Pair::Impl::check_apart(const Interface& interface, const Frame& frame) const
{
    for (std::size_t i = 0; i < frame.memory.size(); ++i)
        for (const auto& [name, memory] : m_saved)
            if (interface.region_names[i] != name && overlap(frame.memory[i], memory))
                return fail(ErrorCode::invalid_argument,
                            "'{}' overlaps '{}', which '{}' saves in its own memory: give it other memory",
                            interface.region_names[i], name, m_name);
    return {};
}

/// Checks a call of forward and notes its memory and shapes. After this check the call overwrites the saved memory.
Result<void> Pair::Impl::check_forward(const Frame& frame)
{
    if (auto apart = check_apart(m_forward->declaration->interface, frame); !apart) return apart;
    m_generation = 0;
    m_memory = frame.memory;
    for (std::size_t i = 0; i < m_same_shapes.size(); ++i) m_shapes[i] = frame.tensors[m_same_shapes[i].in_forward];
    return {};
}

Result<void> Pair::Impl::check_backward(const Frame& frame) const
{
    if (auto apart = check_apart(m_backward->declaration->interface, frame); !apart) return apart;
    for (std::size_t i = 0; i < m_same_shapes.size(); ++i) {
        const SameShape& same = m_same_shapes[i];
        const guards::TensorArg &now = frame.tensors[same.in_backward], &was = m_shapes[i];
        if (std::ranges::equal(std::span{now.sizes}.first(now.rank), std::span{was.sizes}.first(was.rank)) &&
            (!same.same_type || now.dtype == was.dtype))
            continue;
        return fail(ErrorCode::invalid_argument,
                    "the shapes in the calls of forward and backward of '{}' do not match: backward with '{}' as {}, "
                    "forward with '{}' as {}",
                    m_name, same.backward, shape_text(now), same.forward, shape_text(was));
    }
    return {};
}

/// Returns the memory of forward's last call, and forward's scratch. Backward may use only the memory that it declares.
std::vector<NamedMemory> Pair::Impl::forward_memory() const
{
    std::vector<NamedMemory> result;
    const auto& names = m_forward->declaration->interface.region_names;
    for (std::size_t i = 0; i < m_memory.size(); ++i)
        result.emplace_back(
            fmt::format("'{}' of '{}', which backward does not declare", names[i], m_forward->declaration->name),
            m_memory[i]);
    const std::scoped_lock lock{m_forward->mutex};
    for (const auto& [name, memory] : m_forward->runner.scratch_memory())
        result.emplace_back(fmt::format("the scratch '{}' of '{}', which PairSpec::saved does not have", name,
                                        m_forward->declaration->name),
                            memory);
    return result;
}

ForwardCall Pair::Impl::forward(Stream* stream, std::span<const Arg> args)
{
    refuse_nested(m_forward->declaration->name);
    refuse_saved(args);
    const auto target = stream_of(stream);
    const std::scoped_lock lock{m_mutex};
    const Outcome outcome = m_forward->call(target, args);
    {
        const std::scoped_lock forward_lock{m_forward->mutex};
        m_served = m_forward->loaded.served();
    }
    m_generation = next_generation();
    return {outcome, m_generation};
}

Outcome Pair::Impl::backward(const ForwardCall& of, Stream* stream, std::span<const Arg> args)
{
    refuse_nested(m_backward->declaration->name);
    refuse_saved(args);
    const auto target = stream_of(stream);
    const std::scoped_lock lock{m_mutex};
    if (of.generation == 0)
        raise({ErrorCode::invalid_argument,
               fmt::format("backward of '{}' is called before forward: pass what forward returned", m_name)});
    if (of.generation != m_generation)
        raise({ErrorCode::stale,
               fmt::format("backward of '{}' is called for an older forward (generation {}, saved is {}), whose saved "
                           "memory a later forward overwrote: call backward before the next forward, or wrap two pairs",
                           m_name, of.generation, m_generation)});
    m_backward->role->of = m_served;
    const auto id = m_served ? m_served->recording : cachefmt::RecordingId{};
    m_args.assign(args.begin(), args.end());
    m_args.emplace_back(k_recording_values[0], id.high);
    m_args.emplace_back(k_recording_values[1], id.low);
    const Outcome outcome = m_backward->call(target, m_args);
    follow(outcome);
    return outcome;
}

/// Applies backward's outcome to forward. The first refusal has no effect on forward, because that call may have done
/// one-time work.
void Pair::Impl::follow(Outcome outcome)
{
    if (!m_served) return;
    const cachefmt::RecordingId forward = m_served->recording;
    const bool is_there = outcome == Outcome::recorded || outcome == Outcome::replayed;
    if (is_there) m_refusals.erase(forward);
    if (is_there && m_served->waits) {
        const std::scoped_lock lock{m_forward->mutex};
        m_forward->loaded.end_wait(forward);
        m_served->waits = false;
    }
    if (outcome != Outcome::refused || ++m_refusals[forward] < 2) return;
    {
        const std::scoped_lock lock{m_forward->mutex};
        m_forward->loaded.give_up(forward);
    }
    m_refusals.erase(forward);
    m_served.reset();
}

void Pair::Impl::bind(std::string_view state, const MemoryRef& memory)
{
    refuse_nested(m_forward->declaration->name);
    const std::scoped_lock lock{m_mutex};
    const auto declares = [&](const Function::Impl& function) {
        const auto region = function.declaration->interface.region(state);
        return region && (function.declaration->interface.regions[*region].kind == cachefmt::RegionKind::state ||
                          function.declaration->interface.regions[*region].kind == cachefmt::RegionKind::weights);
    };
    if (!declares(*m_forward) && !declares(*m_backward))
        raise(
            {ErrorCode::invalid_argument, fmt::format("'{}' has no state '{}' in forward or backward", m_name, state)});
    for (Function::Impl* function : {m_forward.get(), m_backward.get()}) {
        const auto function_lock = function->lock("bound");
        if (declares(*function)) function->arguments.bind(state, memory);
    }
}

const Function::Impl& Pair::Impl::function(PairHalf half) const
{
    return half == PairHalf::forward ? *m_forward : *m_backward;
}

// --- the public class

Pair::Pair(std::shared_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Pair::Pair(Pair&&) noexcept = default;
Pair& Pair::operator=(Pair&& other) noexcept
{
    std::swap(m_impl, other.m_impl);
    return *this;
}
Pair::~Pair()
{
    if (m_impl) m_impl->retire();
}

// A callable may destroy the pair, so the call keeps the pair until it ends.

ForwardCall Pair::forward(std::span<const Arg> args)
{
    const auto impl = m_impl;
    return impl->forward(nullptr, args);
}
ForwardCall Pair::forward(Stream& stream, std::span<const Arg> args)
{
    const auto impl = m_impl;
    return impl->forward(&stream, args);
}
Outcome Pair::backward(const ForwardCall& of, std::span<const Arg> args)
{
    const auto impl = m_impl;
    return impl->backward(of, nullptr, args);
}
Outcome Pair::backward(const ForwardCall& of, Stream& stream, std::span<const Arg> args)
{
    const auto impl = m_impl;
    return impl->backward(of, &stream, args);
}
void Pair::bind(std::string_view state, const MemoryRef& memory) { m_impl->bind(state, memory); }
Report Pair::report(PairHalf half) const
{
    const auto lock = m_impl->function(half).lock("asked for its report");
    return m_impl->function(half).outcomes.report();
}
std::vector<Miss> Pair::misses(PairHalf half) const
{
    const auto lock = m_impl->function(half).lock("asked for its misses");
    return m_impl->function(half).outcomes.misses();
}

} // namespace warmgraph
