// The work that a caller or a wrapped callable enqueues in a stream.
#include "warmgraph/stream.hpp"

#include <algorithm>
#include <array>

#include "warmgraph/backends/recording.hpp"
#include "warmgraph/capture/run_context.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/device/stream_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

Stream::Stream(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

namespace {
backends::RawParam to_param(const KernelArg& arg)
{
    backends::RawParam param;
    if (const auto* address = std::get_if<Address>(&arg.value())) {
        param.kind = backends::ParamKind::memory;
        param.address = *address;
    } else if (const auto* local = std::get_if<LocalMemory>(&arg.value())) {
        param.kind = backends::ParamKind::local;
        param.local_size = local->bytes;
    } else {
        param.value = std::get<std::vector<std::byte>>(arg.value());
    }
    return param;
}

/// Notes work outside the recorder's streams. During a run of a wrapped callable, work in a stream that is neither the
/// recorder's stream nor a fork of it would be missing from captures. During a capture such work would even run, at
/// addresses without memory.
void note_work(const backends::Stream& stream, std::string_view what)
{
    RunContext* const run = current_run();
    if (run == nullptr || std::ranges::find(run->streams, &stream) != run->streams.end()) return;
    if (run->capturing && !stream.is_capturing())
        value_or_raise(
            refuse_while_capturing(fmt::format("{} in another stream", what),
                                   "enqueue it in Recorder::stream(), or in a stream that was forked from it"));
    if (!run->stray) run->stray = fmt::format("{} in another stream", what);
}

template <class T>
backends::RawAttribute attribute(std::uint32_t id, const T& value)
{
    const auto bytes = std::as_bytes(std::span{&value, 1});
    return {id, {bytes.begin(), bytes.end()}};
}

/// Returns the attributes sorted by id, because RawKernel needs them in this order.
std::vector<backends::RawAttribute> launch_attributes(const Launch& launch)
{
    using namespace backends::launch_attribute;
    constexpr std::int32_t k_on = 1;
    std::vector<backends::RawAttribute> result;
    if (launch.cooperation == Cooperation::grid) result.push_back(attribute(k_cooperative, k_on));
    const Extent& cluster = launch.cluster;
    if (cluster.x != 0 || cluster.y != 0 || cluster.z != 0)
        result.push_back(attribute(k_cluster_dimension, std::array{std::max(cluster.x, 1U), std::max(cluster.y, 1U),
                                                                   std::max(cluster.z, 1U)}));
    if (launch.start == Start::dependent) result.push_back(attribute(k_programmatic_serialization, k_on));
    return result;
}
} // namespace

void Stream::launch_list(const Program& program, std::string_view kernel, const Launch& geometry,
                         std::span<const KernelArg> args)
{
    note_work(*m_impl->stream, fmt::format("kernel '{}'", kernel));
    auto module = value_or_raise(program.m_impl->compiled());
    const auto dimensions = [](const Extent& extent) { return backends::Dim3{extent.x, extent.y, extent.z}; };
    backends::RawKernel raw{
        module.get(), std::string{kernel}, dimensions(geometry.grid), dimensions(geometry.block), {}};
    raw.shared_bytes = geometry.shared_bytes;
    raw.attributes = launch_attributes(geometry);
    raw.params.reserve(args.size());
    for (const KernelArg& arg : args) raw.params.push_back(to_param(arg));
    if (auto launched = m_impl->stream->launch(raw); !launched)
        raise(within("kernel '" + raw.kernel + "'", launched.error()).error());
    if (RunContext* run = current_run())
        run->modules.try_emplace(module.get(),
                                 LaunchedProgram{module, program.name(), ProgramAccess::source_digest(program)});
}

void Stream::copy(Address to, Address from, std::uint64_t bytes)
{
    note_work(*m_impl->stream, "a copy");
    value_or_raise(m_impl->stream->copy({from, to, bytes}));
}

void Stream::fill(Address to, std::span<const std::byte> pattern, std::uint64_t bytes)
{
    note_work(*m_impl->stream, "a fill");
    value_or_raise(m_impl->stream->fill({to, {pattern.begin(), pattern.end()}, bytes}));
}

void Stream::zero(Address to, std::uint64_t bytes)
{
    constexpr std::array<std::byte, 1> k_zero{};
    fill(to, k_zero, bytes);
}

Event Stream::record()
{
    struct EventOwner {
        // Perhaps the last reference to the device, so it is destroyed after the event.
        std::shared_ptr<backends::Device> device;
        std::shared_ptr<backends::Event> event;
    };
    auto kept = std::make_shared<EventOwner>(m_impl->device, value_or_raise(m_impl->stream->record_event()));
    auto* const event = kept->event.get();
    if (RunContext* const run = current_run();
        run != nullptr && std::ranges::find(run->streams, m_impl->stream.get()) != run->streams.end())
        run->events.push_back(event);
    return Event{std::move(kept), event};
}
void Stream::wait(const Event& event)
{
    if (!event)
        raise({ErrorCode::invalid_argument, "stream cannot wait: the event is null, expected one from Stream::record"});
    value_or_raise(m_impl->stream->wait(event));
    // By the rule of stream capture, a stream that waits for an event of a captured stream is captured too.
    if (RunContext* const run = current_run();
        run != nullptr && std::ranges::find(run->events, event.get()) != run->events.end())
        run->streams.push_back(m_impl->stream.get());
}
bool Stream::is_capturing() const noexcept { return m_impl && m_impl->stream->is_capturing(); }
void Stream::synchronize()
{
    value_or_raise(refuse_while_capturing("Stream::synchronize", "synchronise after the call instead"));
    value_or_raise(m_impl->stream->synchronize());
}
void* Stream::native() const noexcept { return m_impl ? m_impl->stream->native() : nullptr; }

struct StreamWatch::Impl {
    std::shared_ptr<backends::Device> device; ///< kept because the device must outlive the watch
    std::unique_ptr<backends::EnqueueWatch> watch;
};

StreamWatch::StreamWatch(Stream& stream)
{
    const Stream::Impl& of = StreamAccess::impl(stream);
    m_impl = std::make_unique<Impl>(of.device, value_or_raise(of.device->recording().watch_enqueues(*of.stream)));
}
StreamWatch::StreamWatch(StreamWatch&&) noexcept = default;
StreamWatch& StreamWatch::operator=(StreamWatch&&) noexcept = default;
StreamWatch::~StreamWatch() = default;
std::string StreamWatch::stray() const
{
    return m_impl ? m_impl->watch->stray().value_or(std::string{}) : std::string{};
}

} // namespace warmgraph
