#include "function.hpp"

#include <algorithm>
#include <new>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/replay/exposure.hpp"

namespace warmgraph::replayer {

namespace {

/// CU_STREAM_PER_THREAD (cuda.h): refused. It is a different stream in each thread, so launches from several threads
/// could not be ordered.
constexpr std::uintptr_t k_stream_per_thread = 2;

void contiguous_strides(guards::TensorArg& tensor) noexcept
{
    std::int64_t stride = 1;
    for (std::size_t d = tensor.rank; d-- > 0;) {
        tensor.strides[d] = stride;
        stride *= std::max<std::int64_t>(tensor.sizes[d], 1);
    }
}

/// An event and its device, which must outlive it.
struct EventQuery {
    std::shared_ptr<Device> device;
    std::shared_ptr<backends::Event> event;
    Result<bool> operator()() const { return event->is_done(); }
};

} // namespace

Function::Function(std::shared_ptr<Cache> cache, std::shared_ptr<Device> device, LoadedEntry loaded)
    : m_cache(std::move(cache)),
      m_device(std::move(device)),
      m_header(std::move(loaded.entry.header)),
      m_interface(std::move(loaded.interface)),
      m_number(loaded.function),
      m_graph(std::move(loaded.entry.graph)),
      m_guard(m_header.guards.tensors, m_header.guards.values, m_device->device->ordinal()),
      m_exposures(m_device->device->exposures())
{
    // The parsed declaration has only valid ranges.
    for (const NumberDecl& scalar : m_interface.scalars) m_ranges.push_back(range_of(scalar).value());
    const auto of_device = m_device->device->facts();
    for (const auto& fact : m_header.guards.facts) {
        if (!fact.name.starts_with(cachefmt::fact::k_environment)) continue;
        if (std::ranges::find(of_device, fact.name, &cachefmt::Fact::name) != of_device.end()) continue;
        m_environment.emplace_back(fact.name.substr(cachefmt::fact::k_environment.size()), fact.value);
    }
    m_bindings.regions.resize(m_graph.regions.size());
    m_bindings.scalars.resize(m_interface.scalars.size());
    m_args.resize(tensors().size());
    m_values.resize(values().size());
}

std::span<const cachefmt::Region> Function::regions() const noexcept
{
    return std::span(graph().regions).first(tensors().size());
}

// --- reading and judging a call

Result<guards::TensorArg> Function::read(std::size_t index, const Tensor& tensor) const
{
    const cachefmt::TensorSpec& recorded = tensors()[index];
    const auto& name = recorded.name;
    const auto sizes = tensor.is_as_recorded ? std::span<const std::int64_t>(recorded.sizes) : tensor.sizes;
    const auto strides = tensor.is_as_recorded ? std::span<const std::int64_t>(recorded.strides) : tensor.strides;
    if (sizes.size() > cachefmt::k_max_rank || (!strides.empty() && strides.size() != sizes.size()))
        return fail(ErrorCode::invalid_argument,
                    "'{}' has {} sizes and {} strides, expected the same number of each, at most {}", name,
                    sizes.size(), strides.size(), cachefmt::k_max_rank);
    for (const auto& list : {sizes, strides})
        if (std::ranges::any_of(list, [](std::int64_t n) { return n < 0; }))
            return fail(ErrorCode::invalid_argument, "'{}' has a negative size or stride", name);
    guards::TensorArg arg;
    arg.base = tensor.memory.address.base;
    arg.offset = tensor.memory.address.offset;
    arg.dtype = tensor.is_as_recorded ? recorded.dtype : tensor.dtype;
    arg.device = m_device->device->ordinal();
    arg.rank = static_cast<std::uint8_t>(sizes.size());
    std::ranges::copy(sizes, arg.sizes.begin());
    if (strides.empty())
        contiguous_strides(arg);
    else
        std::ranges::copy(strides, arg.strides.begin());
    const std::uint64_t needed = guards::extent_bytes(arg);
    if (tensor.memory.address.is_null() && needed != 0)
        return fail(ErrorCode::invalid_argument, "'{}' has no memory, expected {} bytes", name, needed);
    if (tensor.memory.size < needed)
        return fail(ErrorCode::invalid_argument, "'{}' needs {} bytes, its memory has {}: pass a larger one", name,
                    needed, tensor.memory.size);
    return arg;
}

Result<std::uint64_t> Function::read(std::string_view name, DType type, const Number& number) const
{
    const auto bits = is_scalar_type(number.dtype) ? convert(number.dtype, number.bits, type) : std::nullopt;
    if (bits) return *bits;
    return fail(ErrorCode::invalid_argument,
                "'{}' was given as a number of type {}, expected a number that {} can hold", name,
                to_string(number.dtype), to_string(type));
}

Result<void> Function::read(const Call& call)
{
    const std::size_t scalars = m_interface.scalars.size();
    if (call.tensors.size() != tensors().size() || call.numbers.size() != scalars + values().size())
        return fail(ErrorCode::invalid_argument,
                    "{} tensors and {} numbers were given, expected {} and {}: see wgr_regions "
                    "and wgr_numbers",
                    call.tensors.size(), call.numbers.size(), tensors().size(), scalars + values().size());
    for (std::size_t i = 0; i < tensors().size(); ++i) {
        auto arg = read(i, call.tensors[i]);
        if (!arg) return std::unexpected(arg.error());
        m_args[i] = *arg;
        m_bindings.regions[i] = call.tensors[i].memory;
    }
    for (std::size_t i = 0; i < scalars; ++i) {
        const NumberDecl& scalar = m_interface.scalars[i];
        const auto bits = read(scalar.name, scalar.dtype, call.numbers[i]);
        if (!bits) return std::unexpected(bits.error());
        if (!in_range(scalar.dtype, *bits, m_ranges[i]))
            return fail(ErrorCode::invalid_argument,
                        "'{}' is {}, outside its recorded range [{}, {}]: record a wider one", scalar.name,
                        number_text(scalar.dtype, *bits), number_text(scalar.dtype, m_ranges[i].low),
                        number_text(scalar.dtype, m_ranges[i].high));
        m_bindings.scalars[i] = *bits;
    }
    for (std::size_t i = 0; i < values().size(); ++i) {
        const auto bits = read(values()[i].name, values()[i].dtype, call.numbers[scalars + i]);
        if (!bits) return std::unexpected(bits.error());
        m_values[i] = *bits;
    }
    return {};
}

/// Returns the error for a call that was read and does not match the guards.
Error Function::mismatch() const
{
    std::vector<std::string> names;
    for (const auto& tensor : tensors()) names.push_back(tensor.name);
    cachefmt::Guards now{{}, guards::describe(m_args, names, m_device->device->backend() + ":"), values()};
    for (std::size_t i = 0; i < now.tensors.size(); ++i)
        if (tensors()[i].device == guards::k_host_memory)
            now.tensors[i].device = guards::k_host_memory; // judge() checks the memory space later
    for (std::size_t i = 0; i < now.values.size(); ++i) now.values[i].bits = m_values[i];
    guards::guard_distances(now.tensors, m_args);
    const auto misfits = guards::evaluate({{}, tensors(), values()}, now);
    const std::string what =
        misfits.empty() ? "its tensors have another alignment or overlap in another way" : guards::summarize(misfits);
    return {ErrorCode::stale, fmt::format("{} is not replayed: {}; load an entry that was recorded for such calls",
                                          m_header.key.function.function, what)};
}

/// Checks the guards whose values may change while the function is loaded.
Result<void> Function::judge_surroundings()
{
    for (const auto& [name, recorded] : m_environment) {
        const std::string now = environment(name.c_str()).value_or(std::string(cachefmt::fact::k_unset));
        if (now != recorded)
            return fail(
                ErrorCode::stale,
                "the environment variable {} is '{}' now, but was '{}' when it was recorded: load another entry", name,
                now, recorded);
    }
    const std::uint64_t exposures = m_device->device->exposures();
    if (exposures == m_exposures) return {};
    auto known = replay::check_exposed(*m_device->device, graph(), m_cache->images(), {});
    if (known) m_exposures = exposures;
    return known;
}

/// Checks the call that was read.
Result<void> Function::judge()
{
    if (auto same = judge_surroundings(); !same) return same;
    if (!m_guard.matches(m_args, m_values)) return std::unexpected(mismatch());
    if (!m_guard.moved() && m_has_spaces) return {};
    m_has_spaces = false;
    for (std::size_t i = 0; i < tensors().size(); ++i) {
        const Address& address = m_bindings.regions[i].address;
        const bool is_host = !address.is_null() && m_device->device->space_of(address) == cachefmt::MemorySpace::host;
        const bool was_host = tensors()[i].device == guards::k_host_memory;
        if (is_host == was_host) continue;
        return fail(ErrorCode::stale, "'{}' lies in {} memory, but it was recorded in {}", tensors()[i].name,
                    is_host ? "page-locked host" : "device", was_host ? "page-locked host memory" : "device memory");
    }
    m_has_spaces = true;
    return {};
}

// --- launches

/// Drivers crash on some code, and on some first launches. A mark that remains shows later which entry crashed.
Result<void> Function::begin_load()
{
    auto begun = m_cache->store().begin_load(m_header.key, m_device->target);
    if (!begun) return std::unexpected(begun.error());
    m_mark = std::move(*begun);
    return {};
}

/// Restores the entry with the call's addresses, so that nothing must be rebound afterwards.
Result<void> Function::restore()
{
    if (m_executable) return {};
    replay::Loading loading;
    loading.begin = [this] { return begin_load(); };
    Phases phases;
    auto executable =
        replay::Executable::restore(m_device->device, m_graph, m_cache->modules(), m_cache->images(), m_bindings,
                                    phases, replay::RegisteredModules::bind, m_number, &loading);
    if (!executable) {
        m_mark.reset();
        return std::unexpected(executable.error());
    }
    m_executable = std::move(*executable);
    m_graph = {};
    return {};
}

Result<std::shared_ptr<backends::Stream>> Function::stream_of(void* native)
{
    if (!m_device->takes_streams()) {
        if (native == nullptr) return m_device->own_stream;
        return fail(ErrorCode::unsupported,
                    "{} cannot use streams that another library made: pass NULL for its own queue",
                    m_device->device->id());
    }
    if (reinterpret_cast<std::uintptr_t>(native) == k_stream_per_thread)
        return fail(ErrorCode::unsupported, "CU_STREAM_PER_THREAD is not supported, because launches are ordered by "
                                            "their stream: pass a stream of your own");
    if (m_last && m_last_native == native) return m_last;
    auto view = m_device->device->view_stream(native);
    if (!view) return std::unexpected(view.error());
    return std::shared_ptr<backends::Stream>(std::move(*view));
}

/// Orders this launch after the last launch, because both use the executable's scratch.
Result<void> Function::order_after_last(const std::shared_ptr<backends::Stream>& stream)
{
    if (!m_last || m_last == stream) return {};
    if (m_last->is_capturing()) // an event from that stream would draw this launch into its capture
        return fail(ErrorCode::not_recordable,
                    "the stream of its last launch is being captured: launch it after the capture");
    const auto event = m_last->record_event();
    const auto ordered = event ? stream->wait(*event) : Result<void>{std::unexpected(event.error())};
    return ordered ? ordered : m_last->synchronize(); // if no event orders the launch, the host waits
}

/// Must not fail, because the work is already enqueued.
void Function::note_launch(backends::Stream& stream) noexcept
try {
    m_cache->store().settle_loads();
    if (!m_mark) return;
    auto event = stream.record_event();
    if (event)
        m_cache->store().end_load_behind(std::exchange(m_mark, nullptr), EventQuery{m_device, std::move(*event)});
    else if (event.error().code == ErrorCode::unsupported)
        m_mark->succeed(); // this backend has no events, so the launch counts as done
    m_mark.reset();
} catch (const std::bad_alloc&) {
    m_mark.reset(); // drops the mark without noting a success
}

Result<void> Function::launch(void* native, const Call& call)
{
    const std::scoped_lock lock{m_mutex};
    if (auto done = read(call); !done) return done;
    if (auto fits = judge(); !fits) return fits;
    const auto stream = stream_of(native);
    if (!stream) return std::unexpected(stream.error());
    std::unique_lock<std::mutex> default_stream_lock;
    if (*stream == m_device->own_stream) default_stream_lock = std::unique_lock{m_device->own_stream_mutex};
    if ((*stream)->is_capturing())
        return fail(ErrorCode::not_recordable, "the stream is being captured: launch {} after the capture",
                    m_header.key.function.function);
    if (auto ordered = order_after_last(*stream); !ordered) return ordered;
    if (auto restored = restore(); !restored) return restored;
    if (!m_has_launched && !m_mark) // prepare() restored the executable and ended the mark
        if (auto begun = begin_load(); !begun) return begun;
    auto launched = m_executable->launch(**stream, m_bindings, replay::AskedCapture::yes);
    if (!launched && launched.error().code != ErrorCode::partly_launched) {
        m_mark.reset();
        return launched;
    }
    m_has_launched = true;
    m_last = *stream;
    m_last_native = native;
    note_launch(**stream);
    return launched;
}

Result<void> Function::prepare(const Call& call)
{
    const std::scoped_lock lock{m_mutex};
    if (auto done = read(call); !done) return done;
    if (auto fits = judge(); !fits) return fits;
    if (auto restored = restore(); !restored) return restored;
    m_mark.reset(); // a launch may never follow
    return m_executable->upload();
}

} // namespace warmgraph::replayer
