// A library leaves the padding of parameters that it passes by value uninitialised (cuBLAS 13). Such work is recorded
// twice.
#include <chrono>
#include <cstring>
#include <set>

#include "cache_options.hpp"
#include "classify/host_stack.hpp"
#include "facade_fixture.hpp"
#include "flat_fixture.hpp"
#include "number_decl.hpp"
#include "warmgraph/backends/registry.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph::test::uninitialised_padding_test {
namespace {

class FlatBackend final : public backends::Backend {
public:
    explicit FlatBackend(std::shared_ptr<backends::Device> device) : m_device(std::move(device)) {}
    [[nodiscard]] std::string name() const override { return "flat"; }
    [[nodiscard]] Result<std::vector<backends::DeviceInfo>> devices() override
    {
        return std::vector<backends::DeviceInfo>{{"flat:0", "flat", ""}};
    }
    [[nodiscard]] Result<std::shared_ptr<backends::Device>> open(std::string_view) override { return m_device; }

private:
    std::shared_ptr<backends::Device> m_device;
};

/// Runs `work` lower on the stack. In another process, the stack also has other addresses.
template <std::size_t bytes, class Work>
[[gnu::noinline]] void lower_on_the_stack(const Work& work)
{
    std::array<std::byte, bytes> room;
    void* const here = room.data();
    asm volatile("" : : "r"(here) : "memory");
    work();
    asm volatile("" : : "r"(here) : "memory");
}

class UninitialisedPadding : public FlatFunction {
protected:
    UninitialisedPadding() { backends::register_backend(std::make_shared<FlatBackend>(device)); }

    [[nodiscard]] CacheOptions options(Policy policy) const
    {
        return cache_options("toy", dir.path() / "cache", policy);
    }
    /// Enqueues y = x + 1. The kernel gets a further parameter, a struct of 16 bytes: a bool, and 15 bytes of old stack
    /// contents.
    void add(Recorder& r)
    {
        // The address of a local variable cannot be used, because AddressSanitizer keeps local variables on another
        // stack.
        auto left = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        auto work = kernel("add", {r["y"], r["x"]}, k_count);
        Bytes& padded = work.params.emplace_back().value;
        append(padded, (left & ~std::uintptr_t{0xff}) | 1);
        append(padded, left);
        m_seen.insert(left);
        launch(r, work);
    }
    Outcome call_in_a_new_cache(Policy policy, const Callable& callable)
    {
        Spec spec = x_to_y(i32, k_count);
        spec.version = "1";
        Cache cache{options(policy)};
        Function f = cache.wrap("f", Device{"flat:0"}, spec, callable);
        const Outcome outcome = f({{"x", x}, {"y", y}});
        m_reason = f.report().reason;
        EXPECT_EQ(read(y), all(6));
        return outcome;
    }
    TempDir dir;
    MemoryRef x = make(k_count, 5), y = make(k_count, 0);
    std::set<std::uintptr_t> m_seen;
    std::string m_reason;
};

TEST_F(UninitialisedPadding, IsNoDifferenceBetweenTwoRecordings)
{
    const Callable callable = [this](Recorder& r) { add(r); };
    EXPECT_EQ(call_in_a_new_cache(Policy::read_write, callable), Outcome::recorded) << m_reason;
    lower_on_the_stack<100'000>([&] {
        EXPECT_EQ(call_in_a_new_cache(Policy::refresh, callable), Outcome::recorded) << m_reason;
        EXPECT_EQ(call_in_a_new_cache(Policy::require_hit, callable), Outcome::replayed) << m_reason;
    });
    EXPECT_GT(m_seen.size(), 2U) << "the two recordings saw other addresses";
}

TEST_F(UninitialisedPadding, IsStoredAsZerosNextToWhatIsReal)
{
    declare("x", cachefmt::RegionKind::input, k_count, 5);
    declare("y", cachefmt::RegionKind::output, k_count, 0);
    auto recording = recorded([this](Recorder& r) { add(r); });
    ASSERT_TRUE(recording) << recording.error().message;
    Bytes expected(16);
    expected[0] = std::byte{1};
    EXPECT_EQ(stored_kernel(*recording).params.at(3).value, expected);
}

TEST_F(UninitialisedPadding, BesideAWordThatReallyChangesIsRefused)
{
    std::uint64_t calls = 0;
    const Callable callable = [&](Recorder& r) {
        add(r);
        auto work = kernel("add", {r["y"], r["x"]}, k_count);
        append(work.params.emplace_back().value, ++calls);
        launch(r, work);
    };
    EXPECT_EQ(call_in_a_new_cache(Policy::read_write, callable), Outcome::refused);
    EXPECT_THAT(m_reason, HasSubstr("kernel add (node 1), parameter 3 byte 0"));
}

/// The parameter has one byte of an address. It changes with the depth of the stack, but one byte is too little to
/// recognise an address.
TEST_F(UninitialisedPadding, OfAShapeThatCannotBeToldIsNoReasonToRefuse)
{
    std::set<std::uint32_t> seen;
    const Callable callable = [&](Recorder& r) {
        const auto left = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        const auto padded = static_cast<std::uint32_t>((left & 0xff00U) | 1U);
        seen.insert(padded);
        auto work = kernel("add", {r["y"], r["x"]}, k_count);
        append(work.params.emplace_back().value, padded);
        launch(r, work);
    };
    EXPECT_EQ(call_in_a_new_cache(Policy::read_write, callable), Outcome::recorded) << m_reason;
    EXPECT_GT(seen.size(), 1U) << "it moved";
    EXPECT_EQ(call_in_a_new_cache(Policy::require_hit, callable), Outcome::replayed) << m_reason;
}

/// The bytes do not move, so nothing shows that they are padding. The stored entry is replayed and decides.
TEST_F(UninitialisedPadding, AConstantThatNoKernelReadsIsNoRecompiledFunction)
{
    std::uint64_t rest = 0x0134'0000;
    const Callable callable = [&](Recorder& r) {
        auto work = kernel("add", {r["y"], r["x"]}, k_count);
        append(work.params.emplace_back().value, rest);
        launch(r, work);
    };
    EXPECT_EQ(call_in_a_new_cache(Policy::read_write, callable), Outcome::recorded) << m_reason;
    rest = 0x0108'0000;
    EXPECT_EQ(call_in_a_new_cache(Policy::refresh, callable), Outcome::recorded) << m_reason;
    EXPECT_EQ(call_in_a_new_cache(Policy::require_hit, callable), Outcome::replayed) << m_reason;
}

#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer keeps local variables on other stacks

/// Returns 32 bytes of the stack, of which only bytes 0 to 3 and 28 to 31 are written.
[[gnu::noinline]] Bytes half_initialised()
{
    Bytes copied(32);
    std::array<volatile std::byte, 32> fields;
    for (std::size_t i = 0; i < 4; ++i) {
        fields[i] = std::byte{0x11};
        fields[28 + i] = std::byte{0x11};
    }
    const volatile std::byte* from = fields.data();
    asm volatile("" : "+r"(from) : : "memory");
    for (std::size_t i = 0; i < copied.size(); ++i) copied[i] = from[i];
    return copied;
}

/// Leaves the bytes of an earlier call where half_initialised() later has its struct.
[[gnu::noinline]] void leave_on_the_stack(std::byte byte)
{
    std::array<volatile std::byte, 4096> room;
    for (auto& one : room) one = byte;
    asm volatile("" : : "r"(room.data()) : "memory");
}

class UnwrittenWords : public UninitialisedPadding {
protected:
    void launch_with_struct(Recorder& r, const std::string& name, const Bytes& bytes)
    {
        auto work = kernel(name, {r["y"], r["x"]}, k_count);
        work.params.emplace_back().value = bytes;
        launch(r, work);
    }
    void declare_both()
    {
        declare("x", cachefmt::RegionKind::input, k_count, 5);
        declare("y", cachefmt::RegionKind::output, k_count, 0);
    }
};

TEST_F(UnwrittenWords, AreStoredAsZerosAndCounted)
{
    declare_both();
    auto recording = recorded([this](Recorder& r) { launch_with_struct(r, "add", half_initialised()); });
    ASSERT_TRUE(recording) << recording.error().message;
    Bytes expected(32);
    for (std::size_t i = 0; i < 4; ++i) expected[i] = expected[28 + i] = std::byte{0x11};
    EXPECT_EQ(stored_kernel(*recording).params.at(3).value, expected);
    EXPECT_EQ(recording->entry.header.info.unused_words, 4U);
}

TEST_F(UnwrittenWords, OfOtherCapturesAreTheSameRecording)
{
    const Callable callable = [this](Recorder& r) {
        leave_on_the_stack(std::byte{0x42});
        launch_with_struct(r, "add", half_initialised());
    };
    const Callable later = [this](Recorder& r) { launch_with_struct(r, "add", half_initialised()); };
    EXPECT_EQ(call_in_a_new_cache(Policy::read_write, callable), Outcome::recorded) << m_reason;
    EXPECT_EQ(call_in_a_new_cache(Policy::refresh, later), Outcome::recorded) << m_reason;
    EXPECT_EQ(call_in_a_new_cache(Policy::require_hit, later), Outcome::replayed) << m_reason;
}

/// The second run of the callable is its first capture. In this run the library leaves other bytes on the stack, so the
/// next captures decide.
TEST_F(UnwrittenWords, WhereALibraryDidSomethingOnceInItsFirstCaptureAreToldByTheNext)
{
    declare_both();
    int calls = 0;
    auto recording = take(recorded([&](Recorder& r) {
        if (++calls == 2) leave_on_the_stack(std::byte{0x42});
        launch_with_struct(r, "add", half_initialised());
    }));
    EXPECT_EQ(recording.entry.header.info.unused_words, 4U);
}

/// Returns 32 bytes of the stack: three bits of byte 8 are written, and bytes 16 to 23 have an address from an earlier
/// frame.
[[gnu::noinline]] Bytes with_a_bit_field()
{
    Bytes bytes = half_initialised();
    bytes[8] = (bytes[8] & std::byte{0xF8}) | std::byte{5};
    const auto left = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    std::memcpy(bytes.data() + 16, &left, sizeof left);
    return bytes;
}

Bytes with_a_bit_field_over_zeros()
{
    Bytes expected(32);
    for (std::size_t i = 0; i < 4; ++i) expected[i] = expected[28 + i] = std::byte{0x11};
    expected[8] = std::byte{5};
    return expected;
}

/// The unwritten bits are stored as zeros, and so is the stale stack address.
TEST_F(UnwrittenWords, BesideABitFieldAreZerosAndSoIsAStackAddress)
{
    declare_both();
    auto recording = recorded([this](Recorder& r) { launch_with_struct(r, "add", with_a_bit_field()); });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(stored_kernel(*recording).params.at(3).value, with_a_bit_field_over_zeros());
    EXPECT_EQ(recording->entry.header.info.unused_words, 3U) << "and the address";
}

TEST_F(UnwrittenWords, BesideABitFieldAreRefusedByStrict)
{
    declare_both();
    record_options.unused = UnusedWords::refused;
    EXPECT_THAT(message_of(recorded([this](Recorder& r) { launch_with_struct(r, "add", with_a_bit_field()); })),
                HasSubstr("Spec::strict"));
}

/// In one of the captures, the library does something once and leaves other bytes on the stack.
TEST_F(UnwrittenWords, AreNeverStoredAsPaint)
{
    declare_both();
    interface.scalars.push_back(number("n", DType::i32, std::pair{1.0, 3.0}));
    interface.ranges.push_back(*range_of(interface.scalars[0]));
    frame.scalars = {2};
    int recordings = 0;
    for (int once = 1; once < 12; ++once) {
        int calls = 0;
        auto recording = recorded([&](Recorder& r) {
            if (++calls == once) leave_on_the_stack(std::byte{0x42});
            Bytes bytes = with_a_bit_field();
            append(bytes, r.scalar<std::int32_t>("n"));
            launch_with_struct(r, "add", bytes);
        });
        if (!recording) {
            EXPECT_EQ(recording.error().code, ErrorCode::not_recordable) << recording.error().message;
            continue;
        }
        ++recordings;
        const Bytes& stored = stored_kernel(*recording).params.at(3).value;
        const auto paints = std::array{byte_of(Paint::one), byte_of(Paint::other)};
        for (const std::byte paint : paints) EXPECT_EQ(std::ranges::count(stored, paint), 0) << once;
        EXPECT_EQ(stored[8], std::byte{5}) << once;
    }
    EXPECT_GE(recordings, 3);
}

/// A graph with zeros in place of these bytes would be a changed graph. But a graph that allocates memory can only run
/// as the driver's own graph.
TEST_F(UnwrittenWords, OfAGraphThatAllocatesMemoryAreRefused)
{
    declare_both();
    device->captures_allocate = make(16, 0);
    auto plain = recorded([this](Recorder& r) { launch_with_struct(r, "add", Bytes(32)); });
    EXPECT_TRUE(plain) << plain.error().message;
    auto recording = recorded([this](Recorder& r) { launch_with_struct(r, "add", half_initialised()); });
    EXPECT_TRUE(failed_with(recording, ErrorCode::not_recordable,
                            "it allocates 64 bytes in the graph, and takes 4 uninitialised words of parameters: "
                            "it can be verified only without one of the two"));
}

TEST_F(UnwrittenWords, ThatTheResultsDependOnAreRefused)
{
    declare_both();
    int calls = 0;
    auto recording = recorded([&](Recorder& r) {
        if (++calls == 1) leave_on_the_stack(std::byte{0x42}); // run 1 is the answer
        launch_with_struct(r, "add_inside", half_initialised());
    });
    EXPECT_THAT(message_of(recording), HasSubstr("4 uninitialised words of its parameters"));
    EXPECT_EQ(read(frame.memory[1]), all(5 + 0x4242'4242)) << "the answer is the callable's own";
}

TEST_F(UnwrittenWords, AreRefusedByStrict)
{
    declare_both();
    record_options.unused = UnusedWords::refused;
    auto recording = recorded([this](Recorder& r) { launch_with_struct(r, "add", half_initialised()); });
    ASSERT_FALSE(recording);
    EXPECT_THAT(recording.error().message, HasSubstr("parameter 3 byte 4"));
    EXPECT_THAT(recording.error().message, HasSubstr("Spec::strict"));
}

/// A value that differs in each run lies next to unwritten bytes. It must be refused as always.
class MadeAnew : public UnwrittenWords, public testing::WithParamInterface<std::string> {
protected:
    std::uint64_t make(Recorder& r)
    {
        const auto address = [&](const char* name) { return r[name].flat(); };
        if (GetParam() == "counter") return ++m_count;
        if (GetParam() == "clock")
            return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
        if (GetParam() == "hash") return address("x") * 0x9E37'79B9'7F4A'7C15;
        if (GetParam() == "xor") return address("x") ^ address("y");
        return m_undeclared.address.flat();
    }

private:
    std::uint64_t m_count = 0;
    MemoryRef m_undeclared = FlatFunction::make(k_count, 7);
};

TEST_P(MadeAnew, IsRefused)
{
    declare_both();
    auto recording = recorded([this](Recorder& r) {
        Bytes bytes = half_initialised();
        const std::uint64_t word = make(r);
        std::memcpy(bytes.data() + 8, &word, sizeof word);
        launch_with_struct(r, "add", bytes);
    });
    EXPECT_THAT(message_of(recording), HasSubstr("parameter 3 byte 8"));
}

INSTANTIATE_TEST_SUITE_P(BesideUnwrittenBytes, MadeAnew,
                         testing::Values("counter", "clock", "hash", "xor", "undeclared"),
                         [](const auto& word) { return word.param; });

#endif

TEST_F(UninitialisedPadding, AConstantThatMattersIsARecompiledFunction)
{
    std::int32_t count = k_count;
    const Callable callable = [&](Recorder& r) {
        EXPECT_TRUE(StreamAccess::impl(r.stream()).stream->launch(kernel("add", {r["y"], r["x"]}, count)));
    };
    EXPECT_EQ(call_in_a_new_cache(Policy::read_write, callable), Outcome::recorded) << m_reason;
    --count;
    const std::int32_t other = 77;
    ASSERT_TRUE(device->upload(y.address + (k_count - 1) * sizeof other, std::as_bytes(std::span(&other, 1))));
    Spec spec = x_to_y(i32, k_count);
    spec.version = "1";
    Cache cache{options(Policy::refresh)};
    Function f = cache.wrap("f", Device{"flat:0"}, spec, callable);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, HasSubstr("recompiled"));
}

} // namespace
} // namespace warmgraph::test::uninitialised_padding_test
