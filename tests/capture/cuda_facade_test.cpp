// Tests the facade on a CUDA device: pointers, native streams, launch options, preloaded entries.
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "cuda_facade_fixture.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"

namespace warmgraph::test::cuda_facade_test {
namespace {

TEST_F(CudaFacade, RecordsReplaysLoadsAndOpensAhead)
{
    device.prepare_recording();
    {
        Cache cache{options()};
        Function f = add_one(cache);
        for (const std::int64_t count : {128, 200, 256})
            EXPECT_EQ(call(f, count), Outcome::recorded) << f.report().reason;
    }
    for (const bool verified : {false, true}) {
        CacheOptions with = options(Policy::require_hit);
        with.verify_on_load = verified;
        Cache cache{with};
        Function f = add_one(cache);
        const Preload preload = cache.preload({.wait = PreloadWait::all});
        EXPECT_EQ(preload.progress().loaded, 3U);
        for (const std::int64_t count : {200, 128, 256}) EXPECT_EQ(call(f, count), Outcome::replayed);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 3U);
    }
    Cache cache{options()};
    Function f = cache.load("f", device, spec());
    EXPECT_EQ(call(f, 200), Outcome::replayed);
}

TEST_F(CudaFacade, ACallAfterOneInAStreamThatSomebodyCapturesStaysOutOfThatCapture)
{
    const Driver driver;
    Cache cache{options()};
    Function f = add_one(cache);
    Stream first = device.stream(), second = device.stream();
    const Buffer x = numbers(5), y = device.allocate(k_bytes);
    ASSERT_EQ(f(first, {{"x", x}, {"y", y}}), Outcome::recorded) << f.report().reason;
    auto* const theirs = static_cast<CUstream>(first.native());
    CUgraph graph = nullptr;
    std::size_t nodes = 1;
    Driver::check(driver.call<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture")(
        theirs, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_EQ(f(second, {{"x", x}, {"y", y}}), Outcome::replayed);
    Driver::check(driver.call<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(theirs, &graph));
    Driver::check(driver.call<decltype(&cuGraphGetNodes)>("cuGraphGetNodes")(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 0U);
    driver.destroy(graph);
    second.synchronize();
    EXPECT_EQ(read(y), counting(6));
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

TEST_F(CudaFacade, AHeapThatTheCallableItselfRaisesIsRefused)
{
    const Driver driver;
    const auto set = driver.call<decltype(&cuCtxSetLimit)>("cuCtxSetLimit");
    std::size_t usual = 0;
    Driver::check(driver.call<decltype(&cuCtxGetLimit)>("cuCtxGetLimit")(&usual, CU_LIMIT_MALLOC_HEAP_SIZE));
    Cache cache{options()};
    bool is_made = false;
    Function f = cache.wrap("f", device, spec(), [&](Recorder& r) {
        if (!std::exchange(is_made, true)) // at its first use a library does more
            Driver::check(set(CU_LIMIT_MALLOC_HEAP_SIZE, 2 * usual));
        r.stream().copy(r["y"], r["x"], k_bytes);
    });
    const Buffer x = numbers(3), y = device.allocate(k_bytes);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, AllOf(HasSubstr("CU_LIMIT_MALLOC_HEAP_SIZE"), HasSubstr(std::to_string(2 * usual)),
                                         HasSubstr("before the device is opened")));
    EXPECT_EQ(read(y), counting(3));
    Driver::check(set(CU_LIMIT_MALLOC_HEAP_SIZE, usual));
}

TEST_F(CudaFacade, DynamicSharedMemoryIsPartOfTheLaunch)
{
    device.prepare_recording();
    Cache cache{options()};
    Spec one = spec();
    one.outputs = {output("y", i32, {1})};
    Function f = cache.wrap("sum", device, one, [this](Recorder& r) {
        r.stream().launch(program, "sum", Launch{.grid = {1}, .block = {64}, .shared_bytes = 64 * 4}, r["y"], r["x"],
                          int32_t{k_count});
    });
    const Buffer x = numbers(1), y = device.allocate(4);
    for (const Outcome outcome : {Outcome::recorded, Outcome::replayed}) {
        EXPECT_EQ(f({{"x", x}, {"y", y}}), outcome) << f.report().reason;
        EXPECT_EQ(read(y), std::vector<int32_t>{k_count * (k_count + 1) / 2});
    }
}

TEST_F(CudaFacade, PointersOfOthersAreMemoryAndOtherAddressesAreNot)
{
    Cache cache{options(Policy::off)};
    Function f = add_one(cache);
    const Buffer x = numbers(0), y = device.allocate(k_bytes);
    const MemoryRef pointer{Address::from_pointer(x.memory().address.pointer()), k_bytes};
    EXPECT_EQ(f({{"x", pointer}, {"y", y}}), Outcome::eager);
    EXPECT_EQ(read(y), counting(1));
    EXPECT_TRUE(failed_with(thrown_by([&] { f({{"x", MemoryRef{{4096, 0}, k_bytes}}, {"y", y}}); }),
                            ErrorCode::invalid_argument, "Address::from_pointer"));
}

TEST_F(CudaFacade, StreamsAreTheDriversAndPageLockedMemoryIsAddressable)
{
    Stream stream = device.stream();
    EXPECT_NE(stream.native(), nullptr);
    Buffer host = device.allocate_host(k_bytes);
    host.write(counting(3));
    const Buffer y = device.allocate(k_bytes);
    stream.copy(y.memory().address, host.memory().address, k_bytes);
    stream.synchronize();
    EXPECT_EQ(y.read<int32_t>(), counting(3));
}

/// A copy between other kinds of memory is other work. Each kind gets its own variant, in any order of the calls, and a
/// variant does not count as a second recording of another variant.
TEST_F(CudaFacade, PageLockedInputsHaveAVariantOfTheirOwn)
{
    Buffer host = device.allocate_host(k_bytes);
    host.write(counting(5));
    const Buffer here = numbers(5);
    Buffer y = device.allocate(k_bytes);
    const auto call = [&](Function& f, const Buffer& x) {
        y.write(std::vector<int32_t>(k_count, 0));
        const Outcome outcome = f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), counting(6)) << f.report().reason;
        return outcome;
    };
    {
        Cache cache{options()};
        Function f = add_one(cache);
        EXPECT_EQ(call(f, host), Outcome::recorded) << f.report().reason;
        EXPECT_EQ(call(f, here), Outcome::recorded) << f.report().reason;
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(call(f, host), Outcome::replayed) << f.report().reason;
            EXPECT_EQ(call(f, here), Outcome::replayed) << f.report().reason;
        }
        EXPECT_EQ(cache.statistics().cache_faults, 0U);
    }
    Cache cache{options(Policy::require_hit)};
    Function f = add_one(cache);
    const Preload preload = cache.preload({.wait = PreloadWait::all});
    EXPECT_EQ(preload.progress().loaded, 1U) << "the other's input cannot be stood for: its first call restores it";
    EXPECT_EQ(preload.progress().failed, 0U);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(call(f, here), Outcome::replayed);
        EXPECT_EQ(call(f, host), Outcome::replayed);
    }
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

TEST_F(CudaFacade, WhatLibrariesEnqueueOnTheNativeStreamIsRecordedHostFunctionsAndEventsByName)
{
    const Driver driver;
    const auto copy = driver.call<decltype(&cuMemcpyAsync)>("cuMemcpyAsync");
    const auto record = driver.call<decltype(&cuEventRecordWithFlags)>("cuEventRecordWithFlags");
    const auto call_host = driver.call<decltype(&cuLaunchHostFunc)>("cuLaunchHostFunc");
    const auto is_capturing = driver.call<decltype(&cuStreamIsCapturing)>("cuStreamIsCapturing");
    CUevent done = nullptr;
    Driver::check(driver.call<decltype(&cuEventCreate)>("cuEventCreate")(&done, CU_EVENT_DISABLE_TIMING));
    static std::atomic<int> host_calls; // static, because the callable stays registered until the process ends
    const CUhostFn count = [](void* calls) { ++*static_cast<std::atomic<int>*>(calls); };
    register_host_function("cuda_facade.count", count, &host_calls);
    const auto wrap = [&](Cache& cache, const Spec& declared) {
        return cache.wrap("native", device, declared, [&](Recorder& r) {
            const auto stream = static_cast<CUstream>(r.stream().native());
            Driver::check(copy(r["y"].flat(), r["x"].flat(), k_bytes, stream));
            Driver::check(call_host(stream, count, &host_calls));
            // The driver accepts external events only in a capture.
            CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
            Driver::check(is_capturing(stream, &capturing));
            Driver::check(record(done, stream,
                                 capturing == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CU_EVENT_RECORD_EXTERNAL
                                                                              : CU_EVENT_RECORD_DEFAULT));
        });
    };
    const Buffer x = numbers(3);
    Buffer y = device.allocate(k_bytes);
    Spec declared = spec();
    declared.events = {{"done", done}};
    {
        Cache cache{options(Policy::read_write)};
        Function f = wrap(cache, spec());
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
        EXPECT_THAT(f.report().reason, HasSubstr("event")) << "it was not declared";
        EXPECT_EQ(read(y), counting(3));
    }
    // Another user of the event may wait for it, so the call does not wait for its own answer. A later call is recorded
    // instead.
    for (const auto& outcomes :
         {std::pair{Outcome::eager, Outcome::recorded}, {Outcome::replayed, Outcome::replayed}}) {
        Cache cache{options()};
        Function f = wrap(cache, declared);
        for (const Outcome outcome : {outcomes.first, outcomes.second}) {
            y.write(counting(0));
            EXPECT_EQ(f({{"x", x}, {"y", y}}), outcome) << f.report().reason;
            EXPECT_EQ(read(y), counting(3));
        }
    }
    {
        Cache cache{options()};
        Function f = wrap(cache, spec());
        y.write(counting(0));
        EXPECT_NE(f({{"x", x}, {"y", y}}), Outcome::replayed) << "the event of the graph would be one that nobody sees";
        EXPECT_THAT(f.report().reason, HasSubstr("the event 'done', which the function does not declare"));
        EXPECT_EQ(read(y), counting(3));
    }
    {
        Cache cache{options()};
        Function loaded = cache.load("native", device, spec());
        EXPECT_THROW(loaded({{"x", x}, {"y", y}}), Exception);
    }
    const int before = host_calls;
    Cache cache{options()};
    Function f = cache.load("native", device, declared);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::replayed);
    device.synchronize();
    EXPECT_EQ(host_calls, before + 1);
    EXPECT_EQ(driver.call<decltype(&cuEventQuery)>("cuEventQuery")(done), CUDA_SUCCESS);
    Driver::check(driver.call<decltype(&cuEventDestroy)>("cuEventDestroy")(done));
}

TEST_F(CudaFacade, TheCallableSeesTheDevicesContextAlsoInAThreadWithoutOne)
{
    const Driver driver;
    const auto get_current = driver.call<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
    const auto current = [&] {
        CUcontext context = nullptr;
        Driver::check(get_current(&context));
        return context;
    };
    const CUcontext primary = current();
    ASSERT_NE(primary, nullptr);
    std::vector<CUcontext> seen;
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(), [&](Recorder& r) {
        seen.push_back(current());
        r.stream().copy(r["y"], r["x"], k_bytes);
    });
    const Buffer x = numbers(3), y = device.allocate(k_bytes);
    std::thread{[&] {
        EXPECT_EQ(current(), nullptr);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded) << f.report().reason;
        EXPECT_EQ(current(), nullptr) << "the thread is left as it was";
    }}.join();
    EXPECT_GT(seen.size(), 1U);
    EXPECT_THAT(seen, Each(primary));
    EXPECT_EQ(read(y), counting(3));

    seen.clear();
    Cache none{options(Policy::off)};
    Function eager = none.wrap("f", device, spec(), [&](Recorder& r) {
        seen.push_back(current());
        r.stream().copy(r["y"], r["x"], k_bytes);
        throw std::runtime_error("after its work");
    });
    std::thread{[&] {
        EXPECT_THROW((void)eager({{"x", x}, {"y", y}}), std::runtime_error);
        EXPECT_EQ(current(), nullptr);
    }}.join();
    EXPECT_THAT(seen, ElementsAre(primary));
}

TEST_F(CudaFacade, RegistersOnlyTheImageThatAModuleWasLoadedFrom)
{
    const Driver driver;
    const auto backend = backends::make_cuda_backend();
    const auto opened = backend->open("");
    ASSERT_TRUE(opened);
    const auto compiled = take((*opened)->compiler().compile(k_program, ""));
    const std::vector<std::string> one{"iota"};
    const Bytes whole = *compiled->image(), part = *compiled->image_of(one);
    CUmodule module = nullptr, smaller = nullptr;
    const auto load_data = driver.call<decltype(&cuModuleLoadData)>("cuModuleLoadData");
    Driver::check(load_data(&module, whole.data()));
    Driver::check(load_data(&smaller, part.data()));
    Cache cache{options()};
    Function f = add_one(cache);
    EXPECT_EQ(call(f, 256), Outcome::recorded);
    EXPECT_EQ(call(f, 256), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 0U);
    device.register_module(module, whole);
    device.register_module(module, whole); // a second registration is harmless
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(f, 256), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U)
        << "loaded again, once: it might have had to run the registered module";
    const auto refused = [&](CUmodule handle, std::span<const std::byte> image) {
        const auto thrown = thrown_by([&] { device.register_module(handle, image); });
        EXPECT_TRUE(thrown && thrown->code() == ErrorCode::invalid_argument);
        return thrown ? std::string{thrown->what()} : "accepted";
    };
    EXPECT_THAT(refused(nullptr, whole), HasSubstr("the handle is null"));
    EXPECT_THAT(refused(module, std::span{whole}.first(40)), HasSubstr("40 bytes are given"));
    EXPECT_THAT(refused(smaller, whole), HasSubstr("the image does not belong to the module: no kernel"));
    Driver::check(driver.call<decltype(&cuModuleUnload)>("cuModuleUnload")(smaller));
}

TEST_F(CudaFacade, WordsThatAStreamWritesAndWaitsForAreRecordedAndFollowTheirRegions)
{
    const Driver driver;
    const auto write = driver.call<decltype(&cuStreamWriteValue32)>("cuStreamWriteValue32");
    const auto wait = driver.call<decltype(&cuStreamWaitValue32)>("cuStreamWaitValue32");
    const auto batch = driver.call<decltype(&cuStreamBatchMemOp)>("cuStreamBatchMemOp");
    const auto wrap = [&](Cache& cache) {
        return cache.wrap("words", device, spec(), [&](Recorder& r) {
            const auto stream = static_cast<CUstream>(r.stream().native());
            const CUdeviceptr y = r["y"].flat();
            r.stream().copy(r["y"], r["x"], k_bytes);
            Driver::check(wait(stream, r["x"].flat() + 8, 2, CU_STREAM_WAIT_VALUE_GEQ));
            Driver::check(write(stream, y + 4, 77, CU_STREAM_WRITE_VALUE_DEFAULT));
            CUstreamBatchMemOpParams operations[2]{};
            operations[0].waitValue.address = y + 4;
            operations[0].waitValue.value = 77;
            operations[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
            operations[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
            operations[1].writeValue.address = y + k_bytes - 8;
            operations[1].writeValue.value64 = 0x0000'0005'0000'0004;
            operations[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
            Driver::check(batch(stream, 2, operations, 0));
        });
    };
    const auto expected = [](std::int32_t first) {
        auto values = counting(first);
        values[1] = 77;
        values[k_count - 2] = 4;
        values[k_count - 1] = 5;
        return values;
    };
    for (const auto& outcomes :
         {std::pair{Outcome::eager, Outcome::recorded}, {Outcome::replayed, Outcome::replayed}}) {
        Cache cache{options()};
        Function f = wrap(cache);
        const Buffer x = numbers(3), y = device.allocate(k_bytes);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), outcomes.first) << f.report().reason;
        EXPECT_EQ(read(y), expected(3));
        const Buffer x2 = numbers(9), y2 = device.allocate(k_bytes);
        EXPECT_EQ(f({{"x", x2}, {"y", y2}}), outcomes.second) << f.report().reason;
        EXPECT_EQ(read(y2), expected(9));
        const Buffer x3 = numbers(11), y3 = device.allocate(k_bytes);
        EXPECT_EQ(f({{"x", x3}, {"y", y3}}), Outcome::replayed);
        EXPECT_EQ(read(y3), expected(11));
        EXPECT_EQ(read(y), expected(3)) << "the first call's memory is left alone";
    }
}

/// A texture over linear memory. It is destroyed at the end of its scope.
class Texture {
public:
    Texture(const Driver& driver, const Buffer& contents) : m_driver(driver)
    {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = CU_RESOURCE_TYPE_LINEAR;
        resource.res.linear.devPtr = contents.memory().address.flat();
        resource.res.linear.format = CU_AD_FORMAT_SIGNED_INT32;
        resource.res.linear.numChannels = 1;
        resource.res.linear.sizeInBytes = contents.size();
        const CUDA_TEXTURE_DESC how{};
        Driver::check(
            m_driver.call<decltype(&cuTexObjectCreate)>("cuTexObjectCreate")(&m_object, &resource, &how, nullptr));
    }
    Texture(const Texture&) = delete;
    Texture& operator=(const Texture&) = delete;
    ~Texture() { Driver::check(m_driver.call<decltype(&cuTexObjectDestroy)>("cuTexObjectDestroy")(m_object)); }
    [[nodiscard]] std::uint64_t handle() const noexcept { return m_object; }

private:
    const Driver& m_driver;
    CUtexObject m_object = 0;
};

TEST_F(CudaFacade, ATexturesHandleIsAScalarOrRefused)
{
    const Driver driver;
    const Buffer x = numbers(3), y = device.allocate(k_bytes);
    const Texture one{driver, x}, other{driver, y}; // not seen by CUPTI, because recording is not prepared yet
    device.prepare_recording();
    ASSERT_NE(one.handle(), other.handle());
    // The kernel is launched for 0 elements, and takes the handle in place of a pointer: not every device in this test
    // can read a texture.
    const auto enqueue = [&](Recorder& r, std::uint64_t handle) {
        r.stream().copy(r["y"], r["x"], k_bytes);
        r.stream().launch(program, "copy", {.grid = {1}, .block = {32}}, r["y"], handle, int32_t{0});
    };
    Spec declared = spec();
    declared.scalars = {scalar("texture", u64)};
    for (const auto& [texture, outcome] : {std::pair{&one, Outcome::recorded}, {&other, Outcome::replayed}}) {
        Cache cache{options()};
        Function f = cache.wrap("by_scalar", device, declared,
                                [&](Recorder& r) { enqueue(r, r.scalar<std::uint64_t>("texture")); });
        EXPECT_EQ(f({{"x", x}, {"y", y}, {"texture", texture->handle()}}), outcome) << f.report().reason;
        EXPECT_EQ(read(y), counting(3));
    }
    Cache cache{options()};
    Function f = cache.wrap("by_itself", device, spec(), [&](Recorder& r) { enqueue(r, one.handle()); });
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, AllOf(HasSubstr("kernel copy"), HasSubstr("parameter 1 byte 0"),
                                         HasSubstr("texture"), HasSubstr("declare it as a u64 scalar")));
    EXPECT_EQ(read(y), counting(3));
}

} // namespace
} // namespace warmgraph::test::cuda_facade_test
