// Operations on large memory. The backend's implementation, and the host's implementation with several piece sizes, are
// compared with a reference.
#include <array>
#include <thread>

#include "bulk_reference.hpp"
#include "conformance.hpp"
#include "random_graph.hpp"

namespace warmgraph::backends::test::conformance_bulk_test {
namespace {

constexpr std::uint64_t k_piece = 64; // in bytes; the host's pieces are small, so that small memory has several pieces
constexpr std::array<std::size_t, 17> k_sizes{1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 31, 63, 64, 65, 129, 1003};
constexpr std::array<std::size_t, 5> k_offsets{0, 1, 2, 4, 8};
constexpr std::byte k_canary{0xA7};

class ConformanceBulk : public Conformance {
protected:
    /// Calls `body` with the backend's implementation, and then with the host's implementation for several piece sizes.
    template <class Body>
    void each(Body body)
    {
        {
            SCOPED_TRACE("the backend's own");
            body(device->bulk());
        }
        for (const std::uint64_t piece : {std::uint64_t{1}, k_piece, k_bulk_piece}) {
            SCOPED_TRACE(testing::Message() << "pieces of " << piece << " bytes");
            BulkMemory host(*device, piece);
            body(host);
        }
    }
    /// Writes the bytes at `offset` into a new allocation, with canaries around them.
    Address put(const Bytes& bytes, std::size_t offset = 0)
    {
        Bytes whole(offset + bytes.size() + 16, k_canary);
        std::ranges::copy(bytes, whole.begin() + static_cast<std::ptrdiff_t>(offset));
        const Address address = allocate(whole.size());
        EXPECT_TRUE(succeeded(device->upload(address, whole)));
        return address + offset;
    }
    /// Reads the bytes that put() wrote, and checks that the canaries are unchanged.
    Bytes get(const Address& address, std::size_t size, std::size_t offset = 0)
    {
        Bytes whole(offset + size + 16);
        EXPECT_TRUE(succeeded(device->download(whole, Address{address.base, address.offset - offset})));
        const auto is_canary = [](std::byte one) { return one == k_canary; };
        EXPECT_TRUE(std::ranges::all_of(std::span(whole).first(offset), is_canary));
        EXPECT_TRUE(std::ranges::all_of(std::span(whole).last(16), is_canary));
        return {whole.begin() + static_cast<std::ptrdiff_t>(offset), whole.end() - 16};
    }
    static std::vector<DType> types()
    {
        std::vector<DType> all;
        for (std::uint8_t i = 0; i < k_dtype_count; ++i) all.push_back(static_cast<DType>(i));
        return all;
    }
    BulkContents random{warmgraph::test::test_seed()};
};
INSTANTIATE_TEST_SUITE_P(Backends, ConformanceBulk, testing::ValuesIn(subjects()), name_of);

TEST_P(ConformanceBulk, CopiesAndFillsExactlyTheBytesItIsGiven)
{
    for (const std::size_t size : k_sizes) {
        const std::size_t to_offset = k_offsets[random.below(5)], from_offset = k_offsets[random.below(5)];
        SCOPED_TRACE(testing::Message() << size << " bytes, offsets " << to_offset << " and " << from_offset);
        const Bytes bytes = random.bytes(size);
        const Address from = put(bytes, from_offset);
        each([&](BulkMemory& bulk) {
            const Address to = put(Bytes(size), to_offset);
            ASSERT_TRUE(succeeded(bulk.copy(to, from, size)));
            EXPECT_EQ(get(to, size, to_offset), bytes);
            ASSERT_TRUE(succeeded(bulk.fill({to, size}, std::byte{0x5A})));
            EXPECT_EQ(get(to, size, to_offset), Bytes(size, std::byte{0x5A}));
        });
    }
}

TEST_P(ConformanceBulk, MakesEveryElementAnotherOne)
{
    for (const DType type : types()) {
        for (const std::size_t count : {1U, 3U, 37U}) {
            const std::size_t offset = k_offsets[random.below(5)];
            SCOPED_TRACE(testing::Message() << to_string(type) << ", offset " << offset);
            Bytes bytes(count * size_of(type));
            for (std::size_t i = 0; i < count; ++i) set_element(bytes, i, type, random.bits(type));
            Bytes expected = bytes;
            disturb(expected, type);
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint64_t before = element_bits(bytes, i, type), after = element_bits(expected, i, type);
                EXPECT_NE(before, after);
                const long double old = is_real(type) ? std::abs(real_value(type, before)) : 0;
                if (!is_real(type)) {
                    EXPECT_EQ(before ^ after, 1U);
                } else if (old < 1000) { // a number of a usual size, without NaN
                    EXPECT_GE(std::abs(real_value(type, after) - real_value(type, before)), old / 8);
                }
            }
            each([&](BulkMemory& bulk) {
                const Address memory = put(bytes, offset);
                ASSERT_TRUE(succeeded(bulk.disturb({memory, bytes.size()}, type)));
                EXPECT_EQ(get(memory, bytes.size(), offset), expected);
            });
        }
    }
}

TEST_P(ConformanceBulk, FindsTheFirstByteThatDiffers)
{
    for (const std::size_t size : k_sizes) {
        const std::size_t offset = k_offsets[random.below(5)], other_offset = k_offsets[random.below(5)];
        SCOPED_TRACE(testing::Message() << size << " bytes, offsets " << offset << " and " << other_offset);
        const Bytes bytes = random.bytes(size);
        const Address a = put(bytes, offset);
        each([&](BulkMemory& bulk) {
            EXPECT_EQ(take(bulk.first_difference(a, put(bytes, other_offset), size)), std::nullopt);
        });
        for (const std::size_t at : {std::size_t{0}, size / 2, size - 1, k_piece / 2 - 1, k_piece / 2, k_piece}) {
            if (at >= size) continue;
            Bytes other = bytes;
            for (std::size_t i = at; i < size; i += 1 + random.below(40)) other[i] ^= std::byte{0x10};
            const Address b = put(other, other_offset);
            each([&](BulkMemory& bulk) { EXPECT_EQ(take(bulk.first_difference(a, b, size)), std::optional(at)); });
        }
    }
}

TEST_P(ConformanceBulk, FindsTheFirstByteThatIsNotThePattern)
{
    for (const std::size_t size : k_sizes) {
        const std::size_t offset = k_offsets[random.below(5)];
        const std::byte pattern{random.below(2) == 0 ? std::uint8_t{0} : std::uint8_t{0xC5}};
        SCOPED_TRACE(testing::Message() << size << " bytes, offset " << offset);
        const Address equal = put(Bytes(size, pattern), offset);
        each([&](BulkMemory& bulk) { EXPECT_EQ(take(bulk.first_other({equal, size}, pattern)), std::nullopt); });
        for (const std::size_t at : {std::size_t{0}, size / 2, size - 1, k_piece - 1, k_piece}) {
            if (at >= size) continue;
            Bytes bytes(size, pattern);
            for (std::size_t i = at; i < size; i += 1 + random.below(40)) bytes[i] ^= std::byte{0x80};
            const Address memory = put(bytes, offset);
            each([&](BulkMemory& bulk) {
                EXPECT_EQ(take(bulk.first_other({memory, size}, pattern)), std::optional(at));
            });
        }
    }
}

TEST_P(ConformanceBulk, TellsHowFarElementsLeaveTheEnvelope)
{
    for (const DType type : types()) {
        for (std::size_t count = 1; count <= k_most_others; ++count) {
            const std::size_t elements = 1 + random.below(300), offset = k_offsets[random.below(5)];
            std::vector<Bytes> others(count, Bytes(elements * size_of(type)));
            Bytes candidate(elements * size_of(type));
            for (std::size_t i = 0; i < elements; ++i) {
                const std::uint64_t bits = random.bits(type);
                for (Bytes& other : others)
                    set_element(other, i, type, random.below(4) == 0 ? random.bits(type) : random.near(type, bits));
                set_element(candidate, i, type, random.below(3) == 0 ? random.bits(type) : random.near(type, bits));
                if (random.below(3) == 0) set_element(candidate, i, type, element_bits(others[0], i, type));
            }
            const double roundings = std::array{0.0, 0.5, 1.0, 2.0, 1e6}[random.below(5)];
            SCOPED_TRACE(testing::Message() << to_string(type) << ", " << count << " others, " << elements
                                            << " elements, offset " << offset << ", " << roundings << " roundings");
            const Departure expected = reference_departure(candidate, others, type, roundings);
            const Address own = put(candidate, offset);
            std::vector<Address> theirs;
            for (const Bytes& other : others) theirs.push_back(put(other, offset));
            each([&](BulkMemory& bulk) {
                const Departure departure = take(bulk.departure(own, theirs, type, elements, roundings));
                EXPECT_EQ(departure.count, expected.count);
                EXPECT_EQ(departure.first, expected.first);
                EXPECT_DOUBLE_EQ(departure.farthest, expected.farthest);
            });
        }
    }
}

TEST_P(ConformanceBulk, CountsRoundingsAtTheEnvelopesLargerMagnitude)
{
    constexpr float k_infinity = std::numeric_limits<float>::infinity(),
                    k_nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float k_ulp = 0x1p-23F, k_least = 0x1p-149F;
    struct Case {
        std::vector<float> others;
        float value;
        double far; // distance in roundings; 0 means inside
    };
    const std::vector<Case> cases{{{1.0F}, 1.0F, 0},
                                  {{1.0F}, 1.0F + k_ulp, 1},
                                  {{1.0F, 1.5F}, 1.25F, 0},
                                  {{-4.0F, 1.0F}, 1.0F + 4 * k_ulp, 1},
                                  {{0.0F}, -0.0F, 0},
                                  {{0.0F}, 3 * k_least, 3},
                                  {{k_least}, -k_least, 2},
                                  {{k_infinity}, k_infinity, 0},
                                  {{k_infinity, 1.0F}, 3.0F, 0},
                                  {{k_infinity, 1.0F}, 1.0F - 2 * k_ulp, 2},
                                  {{k_infinity}, -k_infinity, k_infinity},
                                  {{1.0F}, k_infinity, k_infinity},
                                  {{k_nan, 1.0F}, k_nan, 0},
                                  {{k_nan, 1.0F}, 1.0F + k_ulp, 1},
                                  {{1.0F}, k_nan, k_infinity},
                                  {{k_nan}, 1.0F, k_infinity}};
    for (const auto& [others, value, far] : cases) {
        SCOPED_TRACE(testing::Message() << value << " against " << others[0] << " and others");
        Bytes own;
        append(own, value);
        const Address candidate = put(own);
        std::vector<Address> theirs;
        for (const float other : others) {
            Bytes bytes;
            append(bytes, other);
            theirs.push_back(put(bytes));
        }
        each([&](BulkMemory& bulk) {
            const Departure exact = take(bulk.departure(candidate, theirs, DType::f32, 1, 0));
            EXPECT_EQ(exact, (Departure{far > 0 ? 1U : 0U, far, 0}));
            // With so many allowed roundings, a value is only outside if its distance is infinite.
            const Departure allowed =
                take(bulk.departure(candidate, theirs, DType::f32, 1, std::isfinite(far) ? far : 1e300));
            EXPECT_EQ(allowed, std::isfinite(far) ? Departure{} : exact);
        });
    }
}

TEST_P(ConformanceBulk, GivesEqualBytesOneFingerprintAndOthersAnother)
{
    for (const std::size_t size : k_sizes) {
        const Bytes bytes = random.bytes(size);
        const Address memory = put(bytes), moved = put(bytes, k_offsets[1 + random.below(4)]);
        std::optional<Fingerprint> first;
        each([&](BulkMemory& bulk) {
            const Fingerprint fingerprint = take(bulk.fingerprint({memory, size}));
            EXPECT_EQ(take(bulk.fingerprint({moved, size})), fingerprint);
            if (!first) first = fingerprint;
            EXPECT_EQ(fingerprint, *first) << "the same whoever makes it";
            Bytes other = bytes;
            other[random.below(size)] ^= static_cast<std::byte>(1U << random.below(8));
            EXPECT_NE(take(bulk.fingerprint({put(other), size})), fingerprint);
            other = bytes;
            other.push_back({});
            EXPECT_NE(take(bulk.fingerprint({put(other), size + 1})), fingerprint) << "longer by a zero";
            if (size < 16) return;
            other = bytes;
            std::ranges::swap_ranges(std::span(other).first(8), std::span(other).subspan(8, 8));
            EXPECT_NE(take(bulk.fingerprint({put(other), size})), fingerprint) << "words in another order";
        });
    }
}

TEST_P(ConformanceBulk, FindsWordsThatLieInWindows)
{
    const std::vector<AddressWindow> windows{
        {0x7000'0000'2000, 0x7000'0000'3000}, {0x10, 0x20}, {0x18, 0x28}, {0x28, 0x29}, {50, 40}, {~0ULL - 1, ~0ULL}};
    for (const std::size_t size : {0U, 3U, 7U, 8U, 12U, 15U, 20U, 64U, 68U, 130U, 2000U}) {
        Bytes bytes = random.bytes(size);
        for (std::size_t planted = 0; planted < size / 24; ++planted) {
            const AddressWindow& window = windows[random.below(windows.size())];
            const std::uint64_t value = window.from + random.below(0x12) - 1; // includes values just outside the window
            std::memcpy(bytes.data() + random.below(size - 8), &value, 8);
        }
        const std::size_t offset = k_offsets[random.below(5)], most = random.below(2) == 0 ? 3 : 1000;
        SCOPED_TRACE(testing::Message() << size << " bytes, offset " << offset << ", at most " << most);
        const Address memory = put(bytes, offset);
        each([&](BulkMemory& bulk) {
            EXPECT_EQ(take(bulk.words_in({memory, size}, windows, most)), reference_words(bytes, windows, most));
        });
    }
}

TEST_P(ConformanceBulk, FindsTheFirstOfMoreWordsThanItGives)
{
    Bytes bytes;
    for (std::uint64_t i = 0; i < 9000; ++i) append(bytes, i % 3 == 0 ? std::uint64_t{1} << 40U | i : ~0ULL);
    const std::vector<AddressWindow> windows{{1ULL << 40U, 1ULL << 41U}}, all{{0, ~0ULL}};
    const Address memory = put(bytes);
    for (const std::size_t most : {0U, 1U, 2000U, 20000U})
        for (const auto& searched : {windows, all})
            EXPECT_EQ(take(device->bulk().words_in({memory, bytes.size()}, searched, most)),
                      reference_words(bytes, searched, most));
}

TEST_P(ConformanceBulk, TakesNoBytesAtAnyAddress)
{
    const Address a, b{a};
    std::optional<Fingerprint> empty;
    each([&](BulkMemory& bulk) {
        EXPECT_TRUE(succeeded(bulk.copy(a, b, 0)));
        EXPECT_TRUE(succeeded(bulk.fill({a, 0}, std::byte{1})));
        EXPECT_TRUE(succeeded(bulk.disturb({a, 0}, DType::f32)));
        EXPECT_EQ(take(bulk.first_difference(a, b, 0)), std::nullopt);
        EXPECT_EQ(take(bulk.first_other({a, 0}, std::byte{1})), std::nullopt);
        EXPECT_EQ(take(bulk.departure(a, std::array{b}, DType::f32, 0, 0)), Departure{});
        EXPECT_EQ(take(bulk.words_in({a, 0}, std::array{AddressWindow{0, 9}}, 9)), BulkMemory::AddressMatches{});
        if (!empty) empty = take(bulk.fingerprint({a, 0}));
        EXPECT_EQ(take(bulk.fingerprint({a, 0})), *empty);
    });
}

TEST_P(ConformanceBulk, RefusesWhatMakesNoSense)
{
    const Address memory = put(Bytes(64));
    const MemoryRef gone = take(device->allocate(64));
    device->release(gone);
    const std::vector<Address> nine(9, memory);
    const std::vector<AddressWindow> many(k_most_windows + 1, AddressWindow{1, 2});
    constexpr auto k_code = ErrorCode::invalid_argument;
    each([&](BulkMemory& bulk) {
        EXPECT_TRUE(failed_with(bulk.departure(memory, {}, DType::f32, 4, 0), k_code, "0 regions"));
        EXPECT_TRUE(failed_with(bulk.departure(memory, nine, DType::f32, 4, 0), k_code, "9 regions"));
        EXPECT_TRUE(failed_with(bulk.departure(memory, std::array{memory}, DType::f32, 4, -1), k_code, "-1"));
        EXPECT_TRUE(failed_with(bulk.departure(memory, std::array{memory}, DType::f64, 1ULL << 62U, 0), k_code));
        EXPECT_TRUE(failed_with(bulk.words_in({memory, 64}, many, 1), k_code, "65 address ranges"));
        EXPECT_TRUE(failed_with(bulk.copy(memory, gone.address, 64), k_code));
        EXPECT_TRUE(failed_with(bulk.fill(gone, std::byte{1}), k_code));
        EXPECT_TRUE(failed_with(bulk.disturb(gone, DType::i32), k_code));
        EXPECT_TRUE(failed_with(bulk.first_difference(memory, gone.address, 64), k_code));
        EXPECT_TRUE(failed_with(bulk.fingerprint({memory, 1000}), k_code));
        EXPECT_TRUE(failed_with(bulk.fingerprint(gone), k_code));
    });
}

TEST_P(ConformanceBulk, RunsStepsInTheirOrderAndNamesTheFirstThatFoundADifference)
{
    using What = BulkStep::What;
    const Bytes bytes = random.bytes(500);
    const Address from = put(bytes, 1);
    each([&](BulkMemory& bulk) {
        const Address to = put(Bytes(500), 3);
        std::vector<BulkStep> steps{{What::copy, {to, 500}, from, {}},
                                    {What::expect_same, {to, 500}, from, {}},
                                    {What::fill, {to + 10, 20}, {}, std::byte{9}},
                                    {What::expect_filled, {to + 10, 20}, {}, std::byte{9}},
                                    {What::fill, {to, 0}, {}, std::byte{1}},
                                    {What::expect_filled, {to, 0}, {}, std::byte{1}}};
        EXPECT_EQ(take(bulk.run(steps)), std::nullopt);
        Bytes expected = bytes;
        std::fill_n(expected.begin() + 10, 20, std::byte{9});
        EXPECT_EQ(get(to, 500, 3), expected);
        steps.push_back({What::fill, {to + 400, 1}, {}, ~expected[400]});
        steps.push_back({What::expect_same, {to + 50, 450}, from + 50, {}});
        steps.push_back({What::expect_filled, {to + 10, 21}, {}, std::byte{9}});
        EXPECT_EQ(take(bulk.run(steps)), (BulkFinding{7, 350}));
        EXPECT_EQ(take(bulk.run({})), std::nullopt);
    });
}

TEST_P(ConformanceBulk, RunsManyStepsAtOnce)
{
    constexpr std::size_t k_count = 4000; // more than one launch's tallies
    const Address memory = put(Bytes(k_count, std::byte{1}));
    std::vector<BulkStep> steps;
    std::vector<MemoryRef> all;
    for (std::size_t i = 0; i < k_count; ++i) {
        steps.push_back({BulkStep::What::expect_filled, {memory + i, 1}, {}, std::byte{1}});
        all.push_back({memory + i, i % 7 == 0 ? 0U : 1U});
    }
    each([&](BulkMemory& bulk) {
        EXPECT_EQ(take(bulk.run(steps)), std::nullopt);
        ASSERT_TRUE(succeeded(bulk.fill({memory + 3999, 1}, std::byte{2})));
        EXPECT_EQ(take(bulk.run(steps)), (BulkFinding{3999, 0}));
        const auto found = take(bulk.fingerprints(all));
        ASSERT_EQ(found.size(), k_count);
        for (const std::size_t i : {0U, 1U, 7U, 2222U, 3998U, 3999U})
            EXPECT_EQ(found[i], take(bulk.fingerprint(all[i])));
        EXPECT_NE(found[3999], found[3998]);
        ASSERT_TRUE(succeeded(bulk.fill({memory + 3999, 1}, std::byte{1})));
    });
}

TEST_P(ConformanceBulk, RefusesStepsOnMemoryThatItWouldNotCopy)
{
    const Address memory = put(Bytes(10));
    const BulkStep wrong{BulkStep::What::copy, {memory, 10}, Address{}, {}};
    each([&](BulkMemory& bulk) { EXPECT_FALSE(bulk.run({&wrong, 1}).has_value()); });
}

TEST_P(ConformanceBulk, BreaksNoCaptureOfItsThread)
{
    const Address x = allocate(all(1)), y = put(Bytes(100, std::byte{3}));
    const RawKernel work = add_scalar(x, 1); // its module is loaded before the time is measured
    const RawGraph graph = capture([&] {
        ASSERT_TRUE(succeeded(stream->launch(work)));
        EXPECT_TRUE(succeeded(device->bulk().fill({y, 99}, std::byte{4})));
        EXPECT_EQ(take(device->bulk().first_other({y, 100}, std::byte{4})), std::optional<std::uint64_t>(99));
    });
    EXPECT_EQ(graph.nodes.size(), 1U);
    replay(graph);
    EXPECT_EQ(read(x), all(2));
}

TEST_P(ConformanceBulk, WorksOnPageLockedMemory)
{
    const auto host = device->allocate_host(1000);
    if (!host) {
        EXPECT_TRUE(failed_with(host, ErrorCode::unsupported));
        return;
    }
    const Bytes bytes = random.bytes(1000);
    const Address memory = put(bytes);
    BulkMemory& bulk = device->bulk();
    ASSERT_TRUE(succeeded(bulk.fill(*host, std::byte{7})));
    EXPECT_EQ(take(bulk.first_other(*host, std::byte{7})), std::nullopt);
    ASSERT_TRUE(succeeded(bulk.copy(host->address, memory, 1000)));
    EXPECT_EQ(take(bulk.first_difference(host->address, memory, 1000)), std::nullopt);
    EXPECT_EQ(take(bulk.fingerprint(*host)), take(bulk.fingerprint({memory, 1000})));
    EXPECT_EQ(take(bulk.departure(memory, std::array{host->address}, DType::u8, 1000, 0)), Departure{});
    ASSERT_TRUE(succeeded(bulk.disturb(*host, DType::i32)));
    EXPECT_EQ(take(bulk.departure(memory, std::array{host->address}, DType::i32, 250, 0)).count, 250U);
    device->release(*host);
}

TEST_P(ConformanceBulk, ServesSeveralThreadsAtOnce)
{
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        const Address memory = put(Bytes(3000, static_cast<std::byte>(t)));
        threads.emplace_back([this, memory, t] {
            for (int i = 0; i < 20; ++i)
                EXPECT_EQ(take(device->bulk().first_other({memory, 3000}, static_cast<std::byte>(t))), std::nullopt);
        });
    }
}

} // namespace
} // namespace warmgraph::backends::test::conformance_bulk_test
