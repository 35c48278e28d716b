// Promise F3: size fields have wrong values, with matching digests. Memory and time must stay bounded.
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <new>

#include <zstd.h>

#include <entry_generated.h>
#include <malloc.h>

#include "expect_error.hpp"
#include "flat_writer.hpp"
#include "sample_entry.hpp"

namespace {
std::atomic<std::size_t> live_bytes{0};
std::atomic<std::size_t> peak_bytes{0};

void* counted_or_null(std::size_t size) noexcept
{
    void* pointer = std::malloc(size);
    if (pointer == nullptr) return nullptr;
    const std::size_t now = live_bytes += malloc_usable_size(pointer);
    if (now > peak_bytes) peak_bytes = now;
    return pointer;
}
void* counted(std::size_t size)
{
    void* const pointer = counted_or_null(size);
    if (pointer == nullptr) throw std::bad_alloc{};
    return pointer;
}
void uncounted(void* pointer) noexcept
{
    if (pointer != nullptr) live_bytes -= malloc_usable_size(pointer);
    std::free(pointer);
}
} // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
// GoogleTest also allocates memory with these functions. Memory that is freed by the functions below must come from the
// same allocator.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted_or_null(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted_or_null(size); }
void operator delete(void* pointer) noexcept { uncounted(pointer); }
void operator delete[](void* pointer) noexcept { uncounted(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { uncounted(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { uncounted(pointer); }

namespace warmgraph::cachefmt::test::lying_sizes_test {
namespace {

using warmgraph::test::poke;
using warmgraph::test::reseal;
namespace at = warmgraph::test::envelope_at;

// The limit for this thread's processor time, in milliseconds. A shared core needs more time. The largest case verifies
// 51,200 tables: with the sanitizers this takes 11 to 50 ms, depending on the load of the machine.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double k_most_ms = 2'000;
#else
constexpr double k_most_ms = 250;
#endif

/// The limits are low, so that the test notices an allocation that follows a wrong size field.
constexpr Limits k_limits{.header_bytes = 64 << 10, .payload_stored_bytes = 1 << 20, .payload_bytes = 1 << 20};
constexpr std::size_t k_cap = k_limits.header_bytes + k_limits.payload_bytes;

struct Cost {
    std::size_t memory = 0;
    double ms = 0;
};

template <class Work>
Cost cost_of(Work work)
{
    const auto now = [] {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
    };
    const std::size_t before = live_bytes;
    peak_bytes = before;
    const double start = now();
    work();
    return {peak_bytes - before, now() - start};
}

void expect_bounded_refusal(const Bytes& bytes, const EntryKey& key)
{
    bool decoded = true, extended = true;
    const Cost cost = cost_of([&] {
        decoded = decode(bytes, key, k_limits).has_value();
        extended = decode_header(bytes, key, k_limits).has_value() && header_extent(bytes, k_limits).has_value();
    });
    ASSERT_FALSE(decoded);
    ASSERT_LE(cost.memory, 2 * k_cap);
    ASSERT_LE(cost.ms, k_most_ms);
    (void)extended; // a wrong size of the payload does not make the header invalid
}

std::vector<std::uint64_t> lies_about(std::uint64_t value)
{
    std::vector<std::uint64_t> lies{0,          1,     value - 1,  value + 1, 1ULL << 31, (1ULL << 32) - 1,
                                    1ULL << 63, ~0ULL, ~0ULL - 191};
    std::erase(lies, value);
    return lies;
}

class LyingSizes : public testing::TestWithParam<std::uint64_t> {
protected:
    const Entry entry = sample_entry();
    const Bytes bytes = encode(entry, {.compress_above = GetParam()}).value();
    static constexpr std::array k_fields{at::header_size, at::payload_stored, at::payload_raw};
};

TEST_P(LyingSizes, OneFieldIsRefusedWithinTheCaps)
{
    ASSERT_TRUE(succeeded(decode(bytes, entry.header.key, k_limits)));
    for (const std::size_t field : k_fields) {
        for (const std::uint64_t lie : lies_about(load<std::uint64_t>(bytes, field))) {
            SCOPED_TRACE("field at " + std::to_string(field) + " = " + std::to_string(lie));
            Bytes lying = bytes;
            poke(lying, field, lie);
            expect_bounded_refusal(lying, entry.header.key);
            reseal(lying, entry.header.key);
            expect_bounded_refusal(lying, entry.header.key);
        }
    }
}

TEST_P(LyingSizes, TwoFieldsAreRefusedWithinTheCaps)
{
    for (const std::size_t one : k_fields) {
        for (const std::size_t two : k_fields) {
            if (one >= two) continue;
            for (const std::uint64_t lie : lies_about(load<std::uint64_t>(bytes, one))) {
                for (const std::uint64_t other : lies_about(load<std::uint64_t>(bytes, two))) {
                    SCOPED_TRACE(std::to_string(one) + " = " + std::to_string(lie) + ", " + std::to_string(two) +
                                 " = " + std::to_string(other));
                    Bytes lying = bytes;
                    poke(lying, one, lie);
                    poke(lying, two, other);
                    reseal(lying, entry.header.key);
                    expect_bounded_refusal(lying, entry.header.key);
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Stored, LyingSizes, testing::Values(0, 1 << 20),
                         [](const auto& given) { return given.param == 0 ? "Compressed" : "Plain"; });

class Bomb : public testing::Test {
protected:
    Bytes frame_of(std::size_t raw_size, bool states_size = true)
    {
        const Bytes zeros(raw_size);
        Bytes out(ZSTD_compressBound(raw_size));
        ZSTD_CCtx* context = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, states_size ? 1 : 0);
        const std::size_t size = ZSTD_compress2(context, out.data(), out.size(), zeros.data(), raw_size);
        ZSTD_freeCCtx(context);
        EXPECT_EQ(ZSTD_isError(size), 0U);
        out.resize(size);
        return out;
    }
    Result<Entry> decode_with(const Bytes& frame, std::uint64_t raw_size)
    {
        const Bytes bytes = assemble(entry.header.key, header, frame, raw_size, 1);
        Result<Entry> result = std::unexpected(Error{});
        const Cost cost = cost_of([&] { result = decode(bytes, entry.header.key, k_limits); });
        EXPECT_LE(cost.memory, 2 * k_cap);
        EXPECT_LE(cost.ms, k_most_ms);
        return result;
    }
    const Entry entry = sample_entry();
    const Bytes header = write_header(entry.header);
};

TEST_F(Bomb, ThatExpandsFarOverItsStatedSizeIsNotExpanded)
{
    EXPECT_TRUE(failed_with(decode_with(frame_of(64 << 20), 1000), ErrorCode::corrupt,
                            "zstd frame holds 67108864 bytes, the envelope says 1000"));
}

TEST_F(Bomb, ThatStatesItsSizeIsOverTheCap)
{
    EXPECT_TRUE(failed_with(decode_with(frame_of(64 << 20), 64 << 20), ErrorCode::corrupt, "over the limit"));
}

TEST_F(Bomb, WithoutAStatedSizeIsRefused)
{
    EXPECT_TRUE(failed_with(decode_with(frame_of(64 << 20, false), 1000), ErrorCode::corrupt,
                            "does not state its content size"));
}

TEST_F(Bomb, OfSeveralFramesIsRefused)
{
    Bytes two = frame_of(1000);
    append(two, ByteView{frame_of(64 << 20)});
    EXPECT_TRUE(failed_with(decode_with(two, 1000), ErrorCode::corrupt, "not exactly one zstd frame"));
}

TEST_F(Bomb, WhoseStatedSizeLiesIsRefused)
{
    Bytes frame = frame_of(500'000);
    ASSERT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), 500'000U);
    const std::uint32_t lie = 1000;
    const auto field = std::search(frame.begin(), frame.end(), reinterpret_cast<const std::byte*>("\x20\xA1\x07\x00"),
                                   reinterpret_cast<const std::byte*>("\x20\xA1\x07\x00") + 4); // the number 500,000
    ASSERT_NE(field, frame.end());
    std::memcpy(&*field, &lie, sizeof lie);
    EXPECT_TRUE(failed_with(decode_with(frame, lie), ErrorCode::corrupt, "zstd cannot decompress"));
}

TEST(SharedContents, AreCountedForEveryUseBeforeTheyAreCopied)
{
    // 500 regions of 512 KiB use the same table of half a megabyte: the file would expand to 250 MiB.
    const Entry entry = sample_entry();
    flatbuffers::FlatBufferBuilder builder;
    const std::vector<std::uint8_t> contents(512 << 10);
    const auto name = builder.CreateString("same");
    const auto region = flat::CreateRegion(builder, name, flat::RegionKind::constant, contents.size(), 1,
                                           builder.CreateVector(contents));
    const auto regions = builder.CreateVector(std::vector(500, region));
    builder.Finish(flat::CreatePayload(builder, regions), "WGPL");
    const auto payload = std::as_bytes(std::span{builder.GetBufferPointer(), builder.GetSize()});
    const Bytes bytes = assemble(entry.header.key, write_header(entry.header), payload, payload.size());
    Result<Entry> result = std::unexpected(Error{});
    const Cost cost = cost_of([&] { result = decode(bytes, entry.header.key, k_limits); });
    EXPECT_TRUE(failed_with(result, ErrorCode::corrupt, "bytes of memory, the limit"));
    EXPECT_LE(cost.memory, k_cap);
    EXPECT_LE(cost.ms, k_most_ms);
}

/// The payload has `contents` of 256 KiB once, and many references to it.
void expect_counted(const std::function<flatbuffers::Offset<flat::Payload>(
                        flatbuffers::FlatBufferBuilder&, flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>>)>& make)
{
    const Entry entry = sample_entry();
    flatbuffers::FlatBufferBuilder builder;
    const auto contents = builder.CreateVector(std::vector<std::uint8_t>(256 << 10));
    builder.Finish(make(builder, contents), "WGPL");
    const auto payload = std::as_bytes(std::span{builder.GetBufferPointer(), builder.GetSize()});
    const Bytes bytes = assemble(entry.header.key, write_header(entry.header), payload, payload.size());
    Result<Entry> result = std::unexpected(Error{});
    const Cost cost = cost_of([&] { result = decode(bytes, entry.header.key, k_limits); });
    EXPECT_TRUE(failed_with(result, ErrorCode::corrupt, "bytes of memory, the limit"));
    EXPECT_LE(cost.memory, k_cap);
    EXPECT_LE(cost.ms, k_most_ms);
}

TEST(SharedContents, OfModuleVariablesAreCountedToo)
{
    expect_counted([](auto& builder, auto contents) {
        const auto variable = flat::CreateVariable(builder, builder.CreateString("v"), contents);
        const auto variables = builder.CreateVector(std::vector(500, variable));
        const flat::Digest digest;
        const auto image = flat::CreateImage(builder, &digest, 1, nullptr, 0, variables);
        return flat::CreatePayload(builder, 0, 0, builder.CreateVector(std::vector{image}));
    });
}

TEST(SharedContents, OfAttributesAreCountedToo)
{
    expect_counted([](auto& builder, auto contents) {
        const auto attribute = flat::CreateAttribute(builder, 1, contents);
        const auto attributes = builder.CreateVector(std::vector(64, attribute));
        const flat::Dim3 one{1, 1, 1};
        const auto kernel =
            flat::CreateKernel(builder, 0, builder.CreateString("k"), &one, &one, 0, 0, false, attributes);
        const auto node = flat::CreateNode(builder, flat::Work::Kernel, kernel.Union());
        return flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node}));
    });
}

TEST(SharedContents, OfMemoryOperationsAreCountedToo)
{
    expect_counted([](auto& builder, auto) {
        const auto operation = flat::CreateMemoryOperation(builder);
        const auto operations = builder.CreateVector(std::vector(256, operation));
        const auto batch = flat::CreateMemoryOperations(builder, operations);
        const auto node = flat::CreateNode(builder, flat::Work::MemoryOperations, batch.Union());
        return flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector(100, node)));
    });
}

TEST(SharedContents, OfSemaphoresAreCountedToo)
{
    expect_counted([](auto& builder, auto) {
        const auto uses = builder.CreateVector(std::vector(256, flat::CreateSemaphoreUse(builder)));
        const auto semaphores = flat::CreateSemaphores(builder, flat::SemaphoreAction::signal, uses);
        const auto node = flat::CreateNode(builder, flat::Work::Semaphores, semaphores.Union());
        return flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector(100, node)));
    });
}

TEST(SharedContents, OfSemaphoresNamesAreCountedToo)
{
    expect_counted([](auto& builder, auto) {
        const auto name = builder.CreateString(std::string(100'000, 'x'));
        const auto names = builder.CreateVector(std::vector(500, name));
        return flat::CreatePayload(builder, 0, 0, 0, 0, 0, 0, 0, names);
    });
}

TEST(SharedContents, OfTheHeaderAreCountedToo)
{
    const Entry entry = sample_entry();
    flatbuffers::FlatBufferBuilder builder;
    const auto text = builder.CreateString(std::string(30'000, 'x'));
    const auto info = flat::CreateInfo(builder, 0, 0, 0, 0, 0, 0, 0, builder.CreateVector(std::vector(2'000, text)));
    const flat::Digest digest;
    builder.Finish(flat::CreateHeader(builder, text, text, text, &digest, flat::EntryKind::graph, 0, 0, 0, info),
                   "WGHD");
    const auto header = std::as_bytes(std::span{builder.GetBufferPointer(), builder.GetSize()});
    const Bytes bytes = assemble(entry.header.key, header, Bytes(64), 64);
    Result<EntryHeader> result = std::unexpected(Error{});
    const Cost cost = cost_of([&] { result = decode_header(bytes, entry.header.key, k_limits); });
    EXPECT_TRUE(failed_with(result, ErrorCode::corrupt, "bytes of memory, the limit"));
    EXPECT_LE(cost.memory, k_cap);
}

/// Tests with the default limits.
class RealCaps : public testing::Test {
protected:
    static constexpr Limits k_real{};

    Result<Entry> decode_counted(const Bytes& bytes, std::size_t most)
    {
        Result<Entry> result = std::unexpected(Error{});
        const Cost cost = cost_of([&] { result = decode(bytes, entry.header.key); });
        EXPECT_LE(cost.memory, most);
        EXPECT_LE(cost.memory, 2 * (k_real.header_bytes + k_real.payload_bytes));
        return result;
    }

    enum class Tables : std::uint8_t { shared, own };
    /// A payload with `nodes` equal kernels and with `contents`. Each kernel has `params` parameters of 1 byte.
    Bytes payload_of(Tables tables, std::size_t nodes, std::size_t params, const std::vector<std::uint8_t>& contents)
    {
        flatbuffers::FlatBufferBuilder builder;
        const auto region = flat::CreateRegion(builder, builder.CreateString("c"), flat::RegionKind::constant,
                                               contents.size(), 1, builder.CreateVector(contents));
        const auto value = builder.CreateVector(std::vector<std::uint8_t>(1));
        const auto param = flat::CreateParam(builder, flat::ParamKind::value, value);
        const flat::Dim3 one{1, 1, 1};
        const auto name = builder.CreateString("k");
        std::vector<flatbuffers::Offset<flat::Node>> all;
        for (std::size_t i = 0; i < nodes; ++i) {
            if (tables == Tables::shared && i > 0) {
                all.push_back(all[0]);
                continue;
            }
            const auto list = builder.CreateVector(std::vector(params, param));
            const auto kernel = flat::CreateKernel(builder, 0, name, &one, &one, list);
            all.push_back(flat::CreateNode(builder, flat::Work::Kernel, kernel.Union()));
        }
        const auto regions = builder.CreateVector(std::vector{region});
        builder.Finish(flat::CreatePayload(builder, regions, 0, 0, builder.CreateVector(all)), "WGPL");
        const auto view = std::as_bytes(std::span{builder.GetBufferPointer(), builder.GetSize()});
        return {view.begin(), view.end()};
    }

    Bytes compressed(const Bytes& raw)
    {
        Bytes out(ZSTD_compressBound(raw.size()));
        out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), 3));
        return out;
    }

    const Entry entry = sample_entry();
    const Bytes header = write_header(entry.header);
};

TEST_F(RealCaps, AFileThatExpandsOutOfProportionIsNotExpanded)
{
    const Bytes frame = compressed(Bytes(k_real.payload_bytes));
    ASSERT_LT(frame.size(), 32U << 10);
    const Bytes bytes = assemble(entry.header.key, header, frame, k_real.payload_bytes, 1);
    EXPECT_TRUE(failed_with(decode_counted(bytes, 256 << 10), ErrorCode::corrupt, "over the limit of 64 to 1"));
}

/// The file expands as far as the limits allow, because all nodes share one table. Without a bound on memory it would
/// take 525 MB and 376 ms.
TEST_F(RealCaps, AFileOf18KilobytesTakes25MegabytesAtMost)
{
    std::vector<std::uint8_t> contents(4'300); // cannot be compressed, so that the zeros after them may compress well
    std::uint32_t state = 1;
    for (std::uint8_t& byte : contents) byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    contents.resize(850'000);
    for (const std::size_t nodes : {40U, 1'000U}) { // each node takes 400 KB of memory
        const Bytes raw = payload_of(Tables::shared, nodes, 4'096, contents);
        const Bytes frame = compressed(raw);
        ASSERT_LT(frame.size(), 18'000U);
        const Bytes bytes = assemble(entry.header.key, header, frame, raw.size(), 1);
        const char* const why = nodes == 40 ? "image 0 is out of range" : "not a valid flatbuffer";
        EXPECT_TRUE(failed_with(decode_counted(bytes, 25 << 20), ErrorCode::corrupt, why)) << nodes;
    }
}

TEST_F(RealCaps, ThePaddingOfManySmallAllocationsCounts)
{
    // Each node has 4,096 parameters of 1 byte. A file of 10 MB expands to 240 MB, a third of which is padding. 900
    // nodes are too many.
    for (const std::size_t nodes : {600U, 900U}) {
        const Bytes raw = payload_of(Tables::own, nodes, 4'096, std::vector<std::uint8_t>(500'000));
        const Bytes bytes = assemble(entry.header.key, header, raw, raw.size());
        const auto refused = decode_counted(bytes, k_real.payload_bytes + 2 * raw.size() + (4 << 20));
        EXPECT_TRUE(failed_with(refused, ErrorCode::corrupt, nodes == 600 ? "out of range" : "memory, the limit"))
            << nodes;
    }
}

TEST_F(RealCaps, WhatTheWriterMakesIsWithinThem)
{
    Entry large = entry;
    large.graph.nodes.assign(k_real.nodes, EmptyNode{}); // empty nodes grow more than any others when they are expanded
    large.graph.edges.clear();
    settle(large);
    const auto bytes = take(encode(large));
    EXPECT_TRUE(succeeded(decode(bytes, large.header.key)));
    large.graph.images[0].variables = {{"zeros", Bytes(8 << 20), {}}}; // compresses to less than 1/64 of its size
    const auto zeros = take(encode(large));
    EXPECT_EQ(decode(zeros, large.header.key).value(), large);
}

} // namespace
} // namespace warmgraph::cachefmt::test::lying_sizes_test
