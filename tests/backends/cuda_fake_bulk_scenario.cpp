// Each operation on bulk memory must give the same result with the backend's kernels and through the host, which is
// used if a driver refuses the kernels.
#include <array>

#include "cuda_fake_scenarios.hpp"
#include "warmgraph/backends/bulk_memory.hpp"

namespace warmgraph::backends::test {
namespace {

constexpr std::uint64_t k_size = 1000;

/// The fake driver accepts the bulk kernels while this object lives.
class TakesKernels {
public:
    explicit TakesKernels(const warmgraph::test::FakeCuda& fake) : m_fake(fake) { m_fake.take_bulk_kernels(true); }
    TakesKernels(const TakesKernels&) = delete;
    TakesKernels& operator=(const TakesKernels&) = delete;
    ~TakesKernels() { m_fake.take_bulk_kernels(false); }

private:
    const warmgraph::test::FakeCuda& m_fake;
};

/// Expects a value from a step. Returns an error for another value, and passes on an error of the driver.
template <class T>
Result<void> expect(const Result<T>& result, const T& expected, const char* step)
{
    if (!result) return std::unexpected(result.error());
    return *result == expected ? Result<void>{} : fail(ErrorCode::internal, "{}: {}", k_wrong, step);
}

Result<void> work(BulkMemory& bulk, const MemoryRef& a, const MemoryRef& b)
{
    using Offset = std::optional<std::uint64_t>;
    Result<void> done = bulk.fill(a, std::byte{1});
    if (done) done = bulk.copy(b.address, a.address, k_size);
    if (done) done = expect<Offset>(bulk.first_difference(a.address, b.address, k_size), {}, "first_difference");
    if (done) done = bulk.disturb({b.address + 100, 8}, DType::i64);
    if (done) done = expect<Offset>(bulk.first_difference(a.address, b.address, k_size), 100, "first_difference");
    if (done) done = expect<Offset>(bulk.first_other(b, std::byte{1}), 100, "first_other");
    if (done) {
        const Departure departure{1, std::numeric_limits<double>::infinity(), 100};
        done = expect(bulk.departure(b.address, std::array{a.address}, DType::u8, k_size, 0), departure, "departure");
    }
    if (done) {
        const BulkMemory::AddressMatches found{{{100, 0x0101010101010100}}, 1};
        const std::array windows{AddressWindow{0x0101010101010100, 0x0101010101010101}};
        done = expect(bulk.words_in(b, windows, 9), found, "words_in");
    }
    if (done) {
        using What = BulkStep::What;
        const std::array steps{BulkStep{What::copy, {a.address, 8}, b.address + 100, {}},
                               BulkStep{What::fill, {b.address + 8, 8}, {}, std::byte{2}},
                               BulkStep{What::expect_same, {a.address, 8}, b.address + 100, {}},
                               BulkStep{What::expect_filled, b, {}, std::byte{1}}};
        done = expect<std::optional<BulkFinding>>(bulk.run(steps), BulkFinding{3, 8}, "run");
        if (done) done = bulk.fill(a, std::byte{1});
    }
    const auto first = bulk.fingerprint({a.address, 500});
    if (done && !first) done = std::unexpected(first.error());
    if (done) done = expect(bulk.fingerprint({a.address + 1, 500}), *first, "fingerprint");
    const std::array halves{MemoryRef{a.address, 500}, MemoryRef{a.address + 500, 500}};
    if (done) done = expect(bulk.fingerprints(halves), std::vector{*first, *first}, "fingerprints");
    return done;
}

} // namespace

Result<void> works_on_bulk_memory(Device& device, const warmgraph::test::FakeCuda& fake)
{
    const TakesKernels taking(fake);
    const auto a = device.allocate(k_size);
    if (!a) return std::unexpected(a.error());
    const auto b = device.allocate(k_size);
    const auto done = b ? work(device.bulk(), *a, *b) : std::unexpected(b.error());
    device.release(*a);
    if (b) device.release(*b);
    return done;
}

} // namespace warmgraph::backends::test
