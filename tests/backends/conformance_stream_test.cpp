// Tests work that a stream runs at once, without a capture.
#include <thread>

#include "conformance.hpp"
#include "warmgraph/backends/event_wait.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test::conformance_stream_test {
namespace {

class ConformanceStream : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, ConformanceStream, testing::ValuesIn(subjects()), name_of);

TEST_P(ConformanceStream, PassesValuesMemoryAndLocalMemory)
{
    const Address x = allocate(), total = allocate(all(0));
    ASSERT_TRUE(succeeded(stream->launch(kernel("iota", {memory(x), value(k_count)}))));
    RawKernel sum = kernel("sum", {memory(total), memory(x), local(k_block * 4), value(k_count)});
    sum.grid = {1, 1, 1};
    ASSERT_TRUE(succeeded(stream->launch(sum)));
    finish();
    EXPECT_EQ(read(x)[77], 77);
    EXPECT_EQ(read(total, 1)[0], k_count * (k_count - 1) / 2);
}

TEST_P(ConformanceStream, KeepsTheOrderOf200LaunchesOfOneKernel)
{
    const Address x = allocate(all(1));
    std::int32_t expected = 1;
    for (std::int32_t i = 0; i < 200; ++i) {
        ASSERT_TRUE(succeeded(stream->launch(i % 20 == 0 ? scale(x, 3) : add_scalar(x, i))));
        expected = i % 20 == 0 ? static_cast<std::int32_t>(3U * static_cast<std::uint32_t>(expected)) : expected + i;
    }
    finish();
    EXPECT_EQ(read(x), all(expected));
}

TEST_P(ConformanceStream, AStreamThatGoesAwayHasDoneItsWork)
{
    const Address x = allocate(all(1));
    auto other = take(device->create_stream());
    for (std::int32_t i = 0; i < 50; ++i) ASSERT_TRUE(succeeded(other->launch(add_scalar(x, 1))));
    other.reset();
    EXPECT_EQ(read(x), all(51));
}

TEST_P(ConformanceStream, PointsArgumentsIntoAllocations)
{
    const std::uint64_t offset = std::max<std::uint64_t>(2ULL * device->limits().memory_alignment, 64);
    const Address x = allocate(all(10));
    RawKernel work = add_scalar(x + offset, 1);
    work.params[2] = value(32);
    ASSERT_TRUE(succeeded(stream->launch(work)));
    finish();
    const auto values = read(x);
    const std::size_t first = offset / sizeof(std::int32_t);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i >= first && i < first + 32 ? 11 : 10) << i;
}

TEST_P(ConformanceStream, RefusesWrongParametersByName)
{
    const Address x = allocate(all(0));
    const RawKernel good = add_scalar(x, 1);
    RawKernel fewer = good;
    fewer.params.pop_back();
    EXPECT_TRUE(
        failed_with(stream->launch(fewer), ErrorCode::invalid_argument, "2 parameters given, the kernel takes 3"));
    RawKernel swapped = good;
    std::swap(swapped.params[0], swapped.params[1]);
    EXPECT_TRUE(failed_with(stream->launch(swapped), ErrorCode::invalid_argument, "'add_scalar': parameter 0"));
    RawKernel wide = good;
    wide.params[1].value.resize(8);
    EXPECT_TRUE(failed_with(stream->launch(wide), ErrorCode::invalid_argument, "8 bytes"));
    RawKernel no_value = good;
    no_value.params[1].value.clear();
    EXPECT_TRUE(failed_with(stream->launch(no_value), ErrorCode::invalid_argument, "parameter 1"));
    RawKernel no_module = good;
    no_module.module = nullptr;
    EXPECT_TRUE(failed_with(stream->launch(no_module), ErrorCode::invalid_argument, "module"));
    RawKernel stranger = good;
    stranger.params[0] = memory({12345, 0});
    EXPECT_TRUE(failed_with(stream->launch(stranger), ErrorCode::invalid_argument, "not memory of this device"));
    RawKernel beyond = good;
    beyond.params[0] = memory(x + k_count * 4);
    EXPECT_TRUE(failed_with(stream->launch(beyond), ErrorCode::invalid_argument, "4096"));
    ASSERT_TRUE(succeeded(stream->launch(good)));
    finish();
    EXPECT_EQ(read(x), all(1));
}

TEST_P(ConformanceStream, RefusesMisalignedArgumentsAndNamesTheAlignment)
{
    const Address x = allocate(all(1));
    RawKernel work = add_scalar(x + 4, 1);
    work.params[2] = value(k_count - 1);
    const auto launched = stream->launch(work);
    if (needs_alignment()) {
        EXPECT_TRUE(failed_with(launched, ErrorCode::invalid_argument,
                                fmt::format("multiple of {} bytes", device->limits().memory_alignment)));
        return;
    }
    EXPECT_TRUE(succeeded(launched));
    finish();
    EXPECT_EQ(read(x)[0], 1);
    EXPECT_EQ(read(x)[k_count - 1], 2);
}

TEST_P(ConformanceStream, RefusesBlocksOverTheLimit)
{
    RawKernel work = add_scalar(allocate(), 1);
    work.block = {static_cast<std::uint32_t>(device->limits().max_block), 2, 1};
    EXPECT_TRUE(
        failed_with(stream->launch(work), ErrorCode::invalid_argument, fmt::format("{}", device->limits().max_block)));
    work.block = {0, 1, 1};
    EXPECT_TRUE(failed_with(stream->launch(work), ErrorCode::invalid_argument));
    work.block = {1, 1, 1};
    work.grid = {1, 0, 1};
    EXPECT_TRUE(failed_with(stream->launch(work), ErrorCode::invalid_argument));
    RawKernel sum =
        kernel("sum", {memory(allocate()), memory(allocate()), local(device->limits().local_memory + 1), value(1)});
    EXPECT_TRUE(failed_with(stream->launch(sum), ErrorCode::invalid_argument, "local memory"));
}

TEST_P(ConformanceStream, CopiesBetweenOffsets)
{
    std::vector<std::int32_t> numbers(k_count);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
    const Address from = allocate(numbers), to = allocate(all(-1));
    ASSERT_TRUE(succeeded(stream->copy({from + 40, to + 400, 80})));
    finish();
    const auto values = read(to);
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], i >= 100 && i < 120 ? static_cast<std::int32_t>(i) - 90 : -1) << i;
    }
    EXPECT_TRUE(failed_with(stream->copy({from, from + 40, 80}), ErrorCode::invalid_argument, "overlap"));
    EXPECT_TRUE(failed_with(stream->copy({from, to, k_count * 4 + 1}), ErrorCode::invalid_argument));
    EXPECT_TRUE(failed_with(stream->copy({from, to, 0}), ErrorCode::invalid_argument));
}

TEST_P(ConformanceStream, FillsWithPatternsOfEverySize)
{
    const Address x = allocate(256);
    for (const std::size_t width : {1, 2, 4, 8, 16}) {
        Bytes pattern(width);
        for (std::size_t i = 0; i < width; ++i) pattern[i] = static_cast<std::byte>(0x10 * width + i + 1);
        ASSERT_TRUE(succeeded(stream->fill({x, {std::byte{0}}, 256})));
        ASSERT_TRUE(succeeded(stream->fill({x + 48, pattern, 64})));
        finish();
        std::vector<std::byte> bytes(256);
        ASSERT_TRUE(succeeded(device->download(bytes, x)));
        for (std::size_t i = 0; i < 256; ++i) {
            ASSERT_EQ(bytes[i], i >= 48 && i < 112 ? pattern[(i - 48) % width] : std::byte{0})
                << "width " << width << " byte " << i;
        }
    }
    EXPECT_TRUE(failed_with(stream->fill({x, Bytes(3), 3}), ErrorCode::invalid_argument, "1, 2, 4, 8 or 16"));
    EXPECT_TRUE(failed_with(stream->fill({x, Bytes(4), 6}), ErrorCode::invalid_argument, "multiples"));
    EXPECT_TRUE(failed_with(stream->fill({x + 2, Bytes(4), 8}), ErrorCode::invalid_argument, "multiples"));
    EXPECT_TRUE(failed_with(stream->fill({x, Bytes(4), 260}), ErrorCode::invalid_argument));
}

TEST_P(ConformanceStream, WaitsForEventsOfAnotherStream)
{
    const auto other = take(device->create_stream());
    const Address x = allocate(all(1));
    for (std::int32_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
        ASSERT_TRUE(succeeded(other->wait(take(stream->record_event()))));
        ASSERT_TRUE(succeeded(other->launch(scale(x, 2))));
        ASSERT_TRUE(succeeded(stream->wait(take(other->record_event()))));
    }
    finish();
    EXPECT_EQ(read(x), all((3 << 20) - 2));
    EXPECT_TRUE(failed_with(stream->wait(nullptr), ErrorCode::invalid_argument));
}

TEST_P(ConformanceStream, TellsWhetherTheWorkBeforeAnEventIsDone)
{
    const Address x = allocate(all(0));
    for (std::int32_t i = 0; i < 20; ++i) ASSERT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
    const auto event = take(stream->record_event());
    EXPECT_EQ(take(wait_for(*event, std::chrono::seconds{60})), true);
    EXPECT_EQ(take(event->is_done()), true);
    EXPECT_EQ(read(x), all(20));
    const auto after = take(stream->record_event());
    finish();
    EXPECT_EQ(take(after->is_done()), true);
    EXPECT_EQ(take(wait_for(*after, std::chrono::seconds{0})), true) << "it asks once";
}

TEST_P(ConformanceStream, AnEventOfACaptureIsNeverDone)
{
    ASSERT_TRUE(succeeded(stream->launch(add_scalar(allocate(all(0)), 1))));
    const auto before = take(stream->record_event());
    ASSERT_TRUE(succeeded(stream->begin_capture()));
    ASSERT_TRUE(succeeded(stream->launch(add_scalar(allocate(), 1))));
    const auto event = take(stream->record_event());
    EXPECT_TRUE(failed_with(event->is_done(), ErrorCode::not_recordable, "recorded in a capture"));
    EXPECT_TRUE(failed_with(wait_for(*event, std::chrono::seconds{1}), ErrorCode::not_recordable));
    EXPECT_EQ(take(wait_for(*before, std::chrono::seconds{60})), true) << "to ask breaks no capture";
    EXPECT_EQ(take(stream->end_capture()).nodes.size(), 1U);
    EXPECT_TRUE(failed_with(event->is_done(), ErrorCode::not_recordable));
}

TEST_P(ConformanceStream, AWatchSeesNoStrayWorkWhereAllOfItIsInOneStreamAndThoseForkedFromIt)
{
    ASSERT_TRUE(succeeded(device->recording().prepare_recording()));
    const Address x = allocate(all(1)), y = allocate(all(1));
    const auto other = take(device->create_stream());
    static_cast<void>(module());
    const auto watch = take(device->recording().watch_enqueues(*stream));
    ASSERT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
    ASSERT_TRUE(succeeded(other->wait(take(stream->record_event()))));
    ASSERT_TRUE(succeeded(other->copy({x, y, k_count * 4})));
    ASSERT_TRUE(succeeded(stream->wait(take(other->record_event()))));
    ASSERT_TRUE(succeeded(stream->fill({x, Bytes(4), k_count * 4})));
    static_cast<void>(read(y, 1)); // the time of a transfer does not count
    EXPECT_EQ(watch->stray(), std::nullopt);
    EXPECT_FALSE(watch->waits_outside());
    finish();
    EXPECT_EQ(read(y), all(2));
}

TEST_P(ConformanceStream, RunsTwoStreamsOfTwoThreads)
{
    std::array<Address, 2> x{allocate(all(0)), allocate(all(0))};
    std::array<std::unique_ptr<Stream>, 2> streams{take(device->create_stream()), take(device->create_stream())};
    static_cast<void>(module());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
            for (std::int32_t i = 0; i < 100; ++i) {
                ASSERT_TRUE(succeeded(streams[t]->launch(add_scalar(x[t], static_cast<std::int32_t>(t) + 1))));
            }
            ASSERT_TRUE(succeeded(streams[t]->synchronize()));
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(read(x[0]), all(100));
    EXPECT_EQ(read(x[1]), all(200));
}

} // namespace
} // namespace warmgraph::backends::test::conformance_stream_test
