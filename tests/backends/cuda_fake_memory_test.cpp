// Tests how the CUDA backend describes memory.
#include <algorithm>
#include <set>

#include <sys/auxv.h>

#include "expect_error.hpp"
#include "fake_cuda/steering.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test::cuda_fake_memory_test {
namespace {

using warmgraph::test::FakeCuda;

class CudaFakeMemory : public testing::Test {
protected:
    [[nodiscard]] std::shared_ptr<Device> open() const { return *backend->open(""); }
    FakeCuda fake;
    std::shared_ptr<Backend> backend = make_cuda_backend(FakeCuda::options());
};

TEST_F(CudaFakeMemory, IsManagedWhereTheDriverSaysSo)
{
    const auto device = open();
    const auto current = device->enter();
    CUdeviceptr managed = 0;
    ASSERT_EQ(fake.entry<decltype(::cuMemAllocManaged)>("cuMemAllocManaged")(&managed, 512, CU_MEM_ATTACH_GLOBAL),
              CUDA_SUCCESS);
    const MemoryRef memory = *device->allocate(512), host = *device->allocate_host(512);
    EXPECT_TRUE(device->recording().is_managed(Address::from_flat(managed)));
    EXPECT_TRUE(device->recording().is_managed(Address::from_flat(managed + 511)));
    EXPECT_FALSE(device->recording().is_managed(memory.address));
    EXPECT_FALSE(device->recording().is_managed(host.address));
    EXPECT_FALSE(device->recording().is_managed(Address::from_flat(1)));
    EXPECT_FALSE(device->recording().is_managed(Address{}));
    fake.fail("cuPointerGetAttribute", 1, 1, CUDA_ERROR_UNKNOWN);
    EXPECT_FALSE(device->recording().is_managed(Address::from_flat(managed))) << "nothing is known of it";
    ASSERT_EQ(fake.entry<decltype(::cuMemFree)>("cuMemFree")(managed), CUDA_SUCCESS);
    EXPECT_FALSE(device->recording().is_managed(Address::from_flat(managed)));
    device->release(memory);
    device->release(host);
}

TEST_F(CudaFakeMemory, OfTheHostIsToldWhereTheDeviceReadsItAndTheDriverDoesNotKnowIt)
{
    const auto number = std::make_unique<int>(7);
    const auto of_the_stack = ::getauxval(AT_RANDOM); // an address on the stack, also with AddressSanitizer
    static const int s_constant = 9;
    const auto flat_of = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
    {
        fake.set_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1);
        const auto device = open();
        const auto mappings = HostMappings::read();
        EXPECT_TRUE(device->recording().host_memory_at(flat_of(number.get()), mappings));
        EXPECT_EQ(device->recording().host_memory_at(of_the_stack, mappings), "[stack]");
        EXPECT_THAT(device->recording().host_memory_at(flat_of(&s_constant)).value_or(""), HasSubstr("backends_test"));
        EXPECT_EQ(device->recording().host_memory_at(12345, mappings), std::nullopt);

        const MemoryRef host = *device->allocate_host(512);
        EXPECT_EQ(device->recording().host_memory_at(host.address.flat()), std::nullopt) << "the driver knows it";
        device->release(host);
        EXPECT_EQ(device->recording().host_memory_at(host.address.flat()), "unnamed memory")
            << "as the fake never unmaps";
    }
    fake.set_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0);
    EXPECT_EQ(open()->recording().host_memory_at(flat_of(number.get())), std::nullopt);
    EXPECT_EQ(open()->recording().host_memory_at(of_the_stack, HostMappings::read()), std::nullopt);
}

/// The upper halves of all addresses in `memory`, without duplicates.
std::set<std::uint64_t> upper_halves(const MemoryRef& memory)
{
    std::set<std::uint64_t> halves;
    const std::uint64_t first = memory.address.flat() >> 32U;
    for (std::uint64_t half = first; half <= (memory.address.flat() + memory.size - 1) >> 32U; ++half)
        halves.insert(half);
    return halves;
}

TEST_F(CudaFakeMemory, ShadowsHaveUpperHalvesOfAddressesThatNothingElseHas)
{
    const auto device = open();
    const int local = 0;
    const auto heap = std::make_unique<int>(0);
    std::vector<MemoryRef> all{{Address::from_pointer(&local), 4}, {Address::from_pointer(heap.get()), 4}};
    std::vector<MemoryRef> owned{*device->allocate(512), *device->allocate_host(512)};
    // The upper halves in use. Two allocations may share an upper half, but a shadow must not.
    std::set<std::uint64_t> taken;
    for (const MemoryRef& memory : owned) all.push_back(memory);
    for (const MemoryRef& memory : all) taken.merge(upper_halves(memory));
    for (int i = 0; i < 40; ++i) {
        const std::uint64_t size = i % 5 == 4 ? 9ULL << 30 : 1000ULL << (4 * (i % 5)); // from 1000 bytes to 9 GiB
        const auto shadow =
            take(i % 3 == 2 ? device->recording().reserve_host_shadow(1000) : device->reserve_shadow(size));
        owned.push_back(shadow);
        for (const std::uint64_t half : upper_halves(shadow))
            EXPECT_TRUE(taken.insert(half).second) << fmt::format("{:#x}", shadow.address.flat());
    }
    for (const MemoryRef& memory : owned) device->release(memory);
}

TEST_F(CudaFakeMemory, ShadowsAreGivenWhereverTheDriverWantsThemIfItFollowsNoWish)
{
    const auto device = open();
    fake.fail("cuMemAddressReserve", 1, 3, CUDA_SUCCESS); // reports success without giving memory
    const auto elsewhere = take(device->reserve_shadow(1000));
    fake.fail("cuMemAddressReserve", 1, 2, CUDA_ERROR_INVALID_VALUE);
    const auto refused_at_first = take(device->reserve_shadow(1000));
    EXPECT_NE(elsewhere.address, refused_at_first.address);
    device->release(elsewhere);
    device->release(refused_at_first);
}

TEST_F(CudaFakeMemory, HostShadowsAreMemoryOfTheHostUntilTheyAreReleased)
{
    const auto device = open();
    const MemoryRef shadow = *device->recording().reserve_host_shadow(5000);
    EXPECT_EQ(device->space_of(shadow.address + 4999), MemorySpace::host);
    EXPECT_EQ(device->recording().allocation_at(shadow.address.flat() + 4999), shadow);
    EXPECT_EQ(device->recording().host_memory_at(shadow.address.flat()), std::nullopt) << "the driver knows it";
    const std::vector<std::byte> bytes(5000, std::byte{7});
    ASSERT_TRUE(succeeded(device->upload(shadow.address, bytes)));
    EXPECT_EQ(shadow.address.pointer<std::byte>()[4999], std::byte{7});
    const auto stream = *device->create_stream();
    const MemoryRef memory = *device->allocate(5000);
    RawCopy up{shadow.address, memory.address, 5000};
    up.source_space = MemorySpace::host;
    EXPECT_TRUE(succeeded(stream->copy(up)));
    device->release(shadow);
    EXPECT_EQ(device->recording().allocation_at(shadow.address.flat()), std::nullopt);
    EXPECT_EQ(HostMappings::read().at(shadow.address.flat()), std::nullopt);
    EXPECT_FALSE(device->upload(shadow.address, bytes));
    EXPECT_FALSE(device->recording().reserve_host_shadow(0));
    EXPECT_FALSE(device->recording().reserve_host_shadow(~0ULL));
    device->release(memory);
}

/// Large uploads with several lanes, whatever the number of processors is.
class CudaFakeLargeUploads : public CudaFakeMemory {
protected:
    static constexpr std::size_t k_size = (std::size_t{9} << 20) + 12345;
    CudaFakeLargeUploads()
    {
        auto options = FakeCuda::options();
        options.upload_lanes = 3;
        device = *make_cuda_backend(options)->open("");
        target = *device->allocate(k_size);
        for (std::size_t i = 0; i < k_size; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 24U);
    }
    ~CudaFakeLargeUploads() override { device->release(target); }
    CudaFakeLargeUploads(const CudaFakeLargeUploads&) = delete;
    CudaFakeLargeUploads& operator=(const CudaFakeLargeUploads&) = delete;
    [[nodiscard]] std::vector<std::byte> arrived() const
    {
        std::vector<std::byte> found(k_size);
        EXPECT_TRUE(succeeded(device->download(found, target.address)));
        return found;
    }

    std::shared_ptr<Device> device;
    MemoryRef target;
    std::vector<std::byte> bytes = std::vector<std::byte>(k_size);
};

TEST_F(CudaFakeLargeUploads, GoInPiecesAndArriveWhole)
{
    for (int i = 0; i < 3; ++i) {
        std::ranges::reverse(bytes);
        ASSERT_TRUE(succeeded(device->upload(target.address, bytes)));
        EXPECT_EQ(arrived(), bytes);
    }
    EXPECT_EQ(fake.calls_of("cuMemHostAlloc"), 3) << "the lanes are made once";
    const auto pieces = 3 * ((k_size + (2U << 20U) - 1) >> 21U);
    EXPECT_EQ(fake.calls_of("cuMemcpyAsync"), static_cast<long>(pieces) + 3) << "and a download each";
}

TEST_F(CudaFakeLargeUploads, OfPageLockedMemoryAreTheDrivers)
{
    const MemoryRef host = *device->allocate_host(k_size);
    const auto before = fake.calls_of("cuMemHostAlloc");
    ASSERT_TRUE(succeeded(device->upload(target.address, {host.address.pointer<std::byte>(), k_size})));
    EXPECT_EQ(fake.calls_of("cuMemHostAlloc"), before);
    device->release(host);
}

TEST_F(CudaFakeLargeUploads, AreTheDriversWhereNoLaneCanBeMade)
{
    fake.fail("cuMemHostAlloc", 2, 1, CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 2; ++i) {
        std::ranges::reverse(bytes);
        ASSERT_TRUE(succeeded(device->upload(target.address, bytes)));
        EXPECT_EQ(arrived(), bytes);
    }
    EXPECT_EQ(fake.calls_of("cuMemHostAlloc"), 2) << "it is tried once";
    EXPECT_EQ(fake.calls_of("cuMemFreeHost"), 1);
}

TEST_F(CudaFakeLargeUploads, FailAsASmallOneDoes)
{
    ASSERT_TRUE(succeeded(device->upload(target.address, bytes)));
    fake.fail("cuMemcpyAsync", 2, 1, CUDA_ERROR_UNKNOWN);
    EXPECT_TRUE(failed_with(device->upload(target.address, bytes), ErrorCode::driver_failed, "cuMemcpyAsync"));
    ASSERT_TRUE(succeeded(device->upload(target.address, bytes)));
    EXPECT_EQ(arrived(), bytes);
}

class CudaFakePools : public CudaFakeMemory {
protected:
    [[nodiscard]] std::shared_ptr<CapturePool> pool(PoolMemory memory = PoolMemory::own) const
    {
        return take(device->recording().open_capture_pool(memory));
    }
    static constexpr std::uint64_t k_unit = 2ULL << 20;
    std::shared_ptr<Device> device = open();
};

TEST_F(CudaFakePools, PutSegmentsOneBehindTheOtherInTheOrderOfTheRequests)
{
    for (const PoolMemory memory : {PoolMemory::own, PoolMemory::shared}) {
        const auto made = pool(memory);
        const std::uint64_t start = take(made->allocate(k_unit));
        EXPECT_EQ(take(made->allocate(k_unit + 1)), start + k_unit);
        EXPECT_EQ(take(made->allocate(301 * k_unit)), start + 3 * k_unit);
        made->release(start + k_unit);
        EXPECT_EQ(take(made->allocate(k_unit)), start + 304 * k_unit) << "addresses are not used again";
    }
}

TEST_F(CudaFakePools, LieAtOtherAddressesEachTime)
{
    const auto first = pool(), second = pool();
    EXPECT_NE(take(first->allocate(k_unit)), take(second->allocate(k_unit)));
}

/// A word of a small number and the upper half of an old address moves by a multiple of 4 GiB from capture to capture.
/// If the pool did so too, the word would look like an address that follows the pool.
TEST_F(CudaFakePools, MoveByNoMultipleOf4GiBBetweenTheTwoCapturesOfACall)
{
    for (int i = 0; i < 50; ++i) {
        const auto runs = pool(PoolMemory::own), never_runs = pool(PoolMemory::shared);
        const std::uint64_t first = take(runs->allocate(k_unit)) % (1ULL << 32);
        const std::uint64_t second = take(never_runs->allocate(k_unit)) % (1ULL << 32);
        EXPECT_NE(first, second);
        for (const std::uint64_t behind : {first, second}) {
            EXPECT_GE(behind, 32ULL << 20);
            EXPECT_LE(behind, 1ULL << 30);
            EXPECT_EQ(behind % (32ULL << 20), 0U) << "the driver follows such hints alone";
        }
    }
}

TEST_F(CudaFakePools, MapSharedMemoryRepeatedly)
{
    const auto shared = pool(PoolMemory::shared);
    static_cast<void>(take(shared->allocate(301 * k_unit)));
    EXPECT_EQ(fake.calls_of("cuMemCreate"), 2) << "a piece of 4 units, and one unit for the rest";
    EXPECT_EQ(fake.calls_of("cuMemMap"), 75 + 1);
    static_cast<void>(take(pool()->allocate(301 * k_unit)));
    EXPECT_EQ(fake.calls_of("cuMemMap"), 75 + 1 + 1) << "own memory is mapped once";
}

TEST_F(CudaFakePools, GiveEverythingBack)
{
    auto made = pool(PoolMemory::shared);
    const std::uint64_t first = take(made->allocate(129 * k_unit));
    static_cast<void>(take(made->allocate(k_unit)));
    made->release(first);
    EXPECT_EQ(fake.calls_of("cuMemUnmap"), 64 + 1);
    made->release(first); // the second time it does nothing
    made.reset();
    EXPECT_EQ(fake.calls_of("cuMemUnmap"), fake.calls_of("cuMemMap"));
    EXPECT_EQ(fake.calls_of("cuMemRelease"), fake.calls_of("cuMemCreate"));
    EXPECT_EQ(fake.calls_of("cuMemAddressFree"), 1);
}

TEST_F(CudaFakePools, AreNotSpoiltByADeviceThatIsFull)
{
    const auto made = pool();
    fake.fail("cuMemCreate", 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(failed_with(made->allocate(k_unit), ErrorCode::out_of_memory));
    fake.fail("cuMemSetAccess", 1, 1, CUDA_ERROR_UNKNOWN);
    EXPECT_TRUE(failed_with(made->allocate(k_unit), ErrorCode::driver_failed));
    EXPECT_EQ(fake.calls_of("cuMemUnmap"), 1);
    EXPECT_TRUE(failed_with(made->allocate(1ULL << 60), ErrorCode::out_of_memory, "bytes of addresses that are left"));
    EXPECT_TRUE(failed_with(made->allocate(0), ErrorCode::out_of_memory));
    static_cast<void>(take(made->allocate(k_unit)));

    const auto shared = pool(PoolMemory::shared); // where a large piece does not fit, small ones may
    fake.fail("cuMemCreate", 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
    const long before = fake.calls_of("cuMemMap");
    static_cast<void>(take(shared->allocate(128 * k_unit)));
    EXPECT_EQ(fake.calls_of("cuMemMap") - before, 128);
}

TEST_F(CudaFakePools, AreRefusedByADeviceWithoutVirtualAddresses)
{
    fake.fail("cuMemGetAllocationGranularity", 1, 1, CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_FALSE(device->recording().open_capture_pool(PoolMemory::own));
}

} // namespace
} // namespace warmgraph::backends::test::cuda_fake_memory_test
