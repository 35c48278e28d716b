// A function on a FlatDevice, with its interface, the frame of a call, and memory with contents.
#pragma once

#include <cmath>
#include <limits>

#include "expect_error.hpp"
#include "flat_device.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/device/recorder.hpp"
#include "warmgraph/device/stream_impl.hpp"
#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph::test {

using cachefmt::RegionKind;

/// The number that lies `count` rounding steps above `from`.
inline float roundings_above(float from, int count)
{
    for (int i = 0; i < count; ++i) from = std::nextafter(from, std::numeric_limits<float>::max());
    return from;
}

class FlatFunction : public testing::Test {
protected:
    static constexpr std::int32_t k_count = 64;

    /// Declares a region of `count` i32 elements in new memory, at `offset` bytes in an allocation.
    MemoryRef declare(const std::string& name, RegionKind kind, std::int32_t count, std::int32_t value,
                      std::uint64_t offset = 0)
    {
        return declare_at(name, kind, make(count, value, offset));
    }
    MemoryRef declare_at(const std::string& name, RegionKind kind, const MemoryRef& memory)
    {
        const auto count = static_cast<std::int32_t>(memory.size / 4);
        interface.regions.push_back({name, kind, DType::i32, {count}, {}});
        interface.region_names.push_back(name);
        guards::TensorArg tensor;
        tensor.base = memory.address.base;
        tensor.offset = memory.address.offset;
        tensor.dtype = DType::i32;
        tensor.rank = 1;
        tensor.sizes[0] = count;
        tensor.strides[0] = 1;
        frame.tensors.push_back(tensor);
        frame.memory.push_back(memory);
        return memory;
    }
    /// Declares a region in the same way, but in page-locked memory.
    MemoryRef declare_host(const std::string& name, RegionKind kind, std::int32_t value)
    {
        const MemoryRef memory = *device->allocate_host(k_count * 4ULL);
        std::fill_n(memory.address.pointer<std::int32_t>(), k_count, value);
        return declare_at(name, kind, memory);
    }
    /// Records as the facade does: the callable's own run answers the call.
    Result<Recording> recorded(const Callable& callable)
    {
        StreamPool streams{device};
        const std::string name = "f";
        const std::shared_ptr<backends::Device> on = device;
        const Runnable runnable{name, interface, callable, on, streams};
        const std::shared_ptr<backends::Stream> stream = *device->create_stream();
        ScratchPool scratch{device, ScratchPool::Kind::memory};
        CaptureTarget target{name, interface, device, run_once(runnable)};
        target.others = others;
        RecordingSession session{std::move(target), frame, modules, record_options};
        if (auto prepared = session.prepare(); !prepared) return std::unexpected(prepared.error());
        if (auto begun = session.begin_answer(stream); !begun) return std::unexpected(begun.error());
        RunContext context;
        context.function = name;
        run(runnable, {frame.tensors, frame.memory, frame.scalars, frame.values}, scratch, stream, context);
        if (auto ended = session.end_answer(context); !ended) return std::unexpected(ended.error());
        if (before_asking) before_asking();
        if (auto done = session.wait_for_answer(); !done) return std::unexpected(done.error());
        if (after_answer) after_answer();
        auto recording = session.record(header(), phases);
        is_abandoned = session.is_abandoned();
        return recording;
    }
    static void launch(Recorder& r, const backends::RawKernel& work)
    {
        EXPECT_TRUE(StreamAccess::impl(r.stream()).stream->launch(work));
    }
    MemoryRef make(std::int32_t count, std::int32_t value, std::uint64_t offset = 0)
    {
        const std::uint64_t size = static_cast<std::uint64_t>(count) * 4;
        const MemoryRef memory{device->allocate(size + offset)->address + offset, size};
        std::fill_n(memory.address.pointer<std::int32_t>(), count, value);
        return memory;
    }
    static std::vector<std::int32_t> read(const MemoryRef& memory)
    {
        const auto* from = memory.address.pointer<const std::int32_t>();
        return {from, from + memory.size / 4};
    }
    static std::vector<std::int32_t> all(std::int32_t value) { return std::vector<std::int32_t>(k_count, value); }

    [[nodiscard]] backends::RawKernel kernel(const std::string& name, std::initializer_list<Address> pointers,
                                             std::optional<std::int32_t> n = std::nullopt)
    {
        backends::RawKernel result;
        result.module = module.get();
        result.kernel = name;
        for (const Address& address : pointers) append(result.params.emplace_back().value, address.flat());
        if (n) append(result.params.emplace_back().value, *n);
        return result;
    }
    [[nodiscard]] backends::RawKernel fetch(const Address& to, std::uint64_t texture)
    {
        backends::RawKernel result = kernel("fetch", {to});
        append(result.params.emplace_back().value, texture);
        append(result.params.emplace_back().value, k_count);
        return result;
    }
    [[nodiscard]] cachefmt::EntryHeader header() const
    {
        cachefmt::EntryHeader result;
        result.guards.tensors = guards::describe(frame.tensors, interface.region_names, "flat:");
        result.key = {{"toy_static_cudagraphcache_12345678", "world1global_rank0", "f"},
                      cachefmt::guards_digest(result.guards)};
        return result;
    }
    [[nodiscard]] const cachefmt::KernelNode& stored_kernel(const Recording& recording, std::size_t node = 0) const
    {
        return std::get<cachefmt::KernelNode>(recording.entry.graph.nodes[node]);
    }
    /// Launches the recording on `regions`, which then have its results.
    Result<void> replay(Recording& recording, std::vector<MemoryRef> regions)
    {
        auto stream = *device->create_stream();
        replay::Bindings bindings{std::move(regions), frame.scalars};
        bindings.regions.resize(recording.entry.graph.regions.size());
        return recording.executable->launch(*stream, bindings);
    }
    /// Replays with the value `x` in all elements of x, and expects the value `y` in all elements of y.
    void expect_replay(Recording& recording, std::int32_t x, std::int32_t y)
    {
        const MemoryRef from = make(k_count, x), to = make(k_count, 0);
        ASSERT_TRUE(succeeded(replay(recording, {from, to})));
        EXPECT_EQ(read(to), all(y));
    }

    std::shared_ptr<FlatDevice> device = std::make_shared<FlatDevice>();
    std::unique_ptr<FlatModule> module =
        std::make_unique<FlatModule>(FlatModule::Origin::compiled, 0, device->textures);
    Interface interface;
    Frame frame;
    replay::ModuleCache modules;
    Phases phases;
    RecordOptions record_options;
    std::vector<NamedMemory> others;     ///< passed as CaptureTarget::others
    std::function<void()> before_asking; ///< runs after the answer was enqueued, and before the wait for it
    std::function<void()> after_answer;  ///< runs after the answer has ended, and before the recording
    bool is_abandoned = false;
};

} // namespace warmgraph::test
