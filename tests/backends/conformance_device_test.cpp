// Tests devices, their memory, and programs.
#include <algorithm>
#include <set>

#include "conformance.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test::conformance_device_test {
namespace {

class ConformanceDevice : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, ConformanceDevice, testing::ValuesIn(subjects()), name_of);

TEST_P(ConformanceDevice, StatesItsGuardFactsOnceEach)
{
    const auto facts = device->facts();
    const auto value_of = [&](std::string_view name) {
        EXPECT_EQ(std::ranges::count(facts, name, &cachefmt::Fact::name), 1) << name;
        const auto found = std::ranges::find(facts, name, &cachefmt::Fact::name);
        return found == facts.end() ? "" : found->value;
    };
    for (const char* name : {"backend", "device.architecture", "device.units", "device.local_memory",
                             "device.partition", "driver.version", "runtime.version", "device.name"}) {
        EXPECT_FALSE(value_of(name).empty()) << name;
        EXPECT_NE(value_of(name), cachefmt::k_unknown) << name;
    }
    EXPECT_EQ(device->id().substr(0, device->id().find(':')), value_of("backend"));
    EXPECT_EQ(std::ranges::find(facts, "device.name", &cachefmt::Fact::name)->role, cachefmt::Role::advisory);
    EXPECT_FALSE(device->replay_mode().empty());
}

TEST_P(ConformanceDevice, KeepsBytesAtOffsets)
{
    const Address base = allocate(1000);
    std::vector<std::byte> bytes(77);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + 1);
    ASSERT_TRUE(succeeded(device->upload(base, std::vector<std::byte>(1000))));
    ASSERT_TRUE(succeeded(device->upload(base + 3, bytes)));
    std::vector<std::byte> all_bytes(1000);
    ASSERT_TRUE(succeeded(device->download(all_bytes, base)));
    EXPECT_TRUE(std::ranges::equal(std::span(all_bytes).subspan(3, 77), bytes));
    EXPECT_EQ(all_bytes[2], std::byte{0});
    EXPECT_EQ(all_bytes[80], std::byte{0});
}

TEST_P(ConformanceDevice, CountsTheMostMemoryThatItHeld)
{
    constexpr std::uint64_t k_bytes = 1U << 20U, k_huge = 1ULL << 30U;
    const MemoryRef before = take(device->allocate(k_bytes));
    MemoryTally::Watch watch{device->tally()};
    const MemoryRef one = take(device->allocate(k_bytes)), two = take(device->allocate(k_bytes));
    EXPECT_EQ(watch.peak(), 2 * k_bytes);
    device->release(one);
    device->release(before);
    device->release(take(device->allocate(2 * k_bytes)));
    EXPECT_EQ(watch.peak(), 2 * k_bytes) << "the memory from before the watch is gone, too";
    watch.pause();
    device->release(take(device->allocate(8 * k_bytes)));
    EXPECT_EQ(watch.peak(), 2 * k_bytes);
    watch.resume();
    device->release(two);
    device->release(take(device->reserve_shadow(k_huge)));
    EXPECT_LT(watch.peak(), k_huge / 8) << "a shadow has little memory";
}

TEST_P(ConformanceDevice, RefusesMemoryItDoesNotHave)
{
    const MemoryRef memory = take(device->allocate(100));
    std::vector<std::byte> bytes(101);
    EXPECT_TRUE(failed_with(device->upload(memory.address, bytes), ErrorCode::invalid_argument, "100"));
    EXPECT_TRUE(
        failed_with(device->download(std::span(bytes).first(1), memory.address + 100), ErrorCode::invalid_argument));
    EXPECT_TRUE(
        failed_with(device->download(std::span(bytes).first(2), memory.address + ~0ULL), ErrorCode::invalid_argument));
    device->release(memory);
    EXPECT_TRUE(failed_with(device->upload(memory.address, std::span(bytes).first(1)), ErrorCode::invalid_argument,
                            "released"));
    EXPECT_TRUE(failed_with(device->allocate(0), ErrorCode::invalid_argument));
    EXPECT_TRUE(failed_with(device->allocate(1ULL << 50), ErrorCode::out_of_memory));
}

TEST_P(ConformanceDevice, NeverGivesTheSameBaseTwiceUnlessAddressesAreFlat)
{
    const MemoryRef first = take(device->allocate(64));
    const MemoryRef beside = take(device->allocate(64));
    EXPECT_NE(first.address, beside.address);
    device->release(first);
    const MemoryRef second = take(device->allocate(64));
    if (device->limits().flat_addresses) {
        EXPECT_EQ(first.address.base, k_flat_base);
        EXPECT_EQ(second.address.base, k_flat_base);
        const auto around = device->recording().allocation_at(second.address.flat() + 63);
        ASSERT_TRUE(around.has_value());
        EXPECT_EQ(*around, second);
    } else {
        EXPECT_NE(first.address.base, second.address.base);
        EXPECT_EQ(device->recording().allocation_at(second.address.flat()), std::nullopt);
    }
    device->release(second);
    device->release(beside);
}

TEST_P(ConformanceDevice, TakesItsOwnMemoryForNeitherManagedNorOrdinaryHostMemory)
{
    const MemoryRef memory = take(device->allocate(64)), shadow = take(device->reserve_shadow(64));
    for (const MemoryRef& known : {memory, shadow}) {
        EXPECT_FALSE(device->recording().is_managed(known.address));
        EXPECT_EQ(device->recording().host_memory_at(known.address.flat()), std::nullopt);
    }
    EXPECT_EQ(device->recording().host_memory_at(0), std::nullopt);
    if (!device->limits().flat_addresses) {
        EXPECT_EQ(device->recording().host_memory_at(reinterpret_cast<std::uintptr_t>(&memory)), std::nullopt);
    }
    device->release(memory);
    device->release(shadow);
}

TEST_P(ConformanceDevice, ReservesHostMemoryForCapturesWhereItHasHostMemory)
{
    const auto shadow = device->recording().reserve_host_shadow(1000);
    if (!device->limits().flat_addresses) {
        EXPECT_TRUE(failed_with(shadow, ErrorCode::unsupported, "page-locked host memory"));
        return;
    }
    ASSERT_TRUE(succeeded(shadow));
    const auto other = take(device->recording().reserve_host_shadow(1000)), third = take(device->reserve_shadow(1000));
    EXPECT_EQ(device->space_of(shadow->address), MemorySpace::host);
    std::set<std::uint64_t> upper;
    for (const MemoryRef& memory : {*shadow, other, third}) upper.insert(memory.address.flat() >> 32U);
    EXPECT_EQ(upper.size(), 3U);
    const std::vector<std::byte> bytes(1000, std::byte{5});
    ASSERT_TRUE(succeeded(device->upload(shadow->address, bytes)));
    std::vector<std::byte> back(1000);
    ASSERT_TRUE(succeeded(device->download(back, shadow->address)));
    EXPECT_EQ(back, bytes);
    for (const MemoryRef& memory : {*shadow, other, third}) device->release(memory);
    EXPECT_EQ(device->recording().allocation_at(shadow->address.flat()), std::nullopt);
}

TEST_P(ConformanceDevice, GivesTheCompilersLogForABrokenSource)
{
    EXPECT_TRUE(failed_with(device->compiler().compile(GetParam().broken_program, ""), ErrorCode::compile_failed,
                            GetParam().broken_log));
}

TEST_P(ConformanceDevice, ListsItsKernelsWhenOneIsUnknown)
{
    EXPECT_EQ(take(module().param_count("add")), 4U);
    EXPECT_TRUE(failed_with(module().param_count("subtract"), ErrorCode::not_found, "add_scalar"));
    RawKernel work = add_scalar(allocate(), 1);
    work.kernel = "subtract";
    EXPECT_TRUE(failed_with(stream->launch(work), ErrorCode::invalid_argument, "add_scalar"));
}

TEST_P(ConformanceDevice, LoadsItsOwnImage)
{
    const Address x = allocate(all(1));
    ASSERT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
    finish();
    const Bytes image = take(module().image());
    EXPECT_EQ(image, take(module().image()));
    const auto loaded = take(device->load(image));
    EXPECT_EQ(take(loaded->image()), image);
    EXPECT_EQ(loaded->origin(), Digest{});
    RawKernel work = add_scalar(x, 5);
    work.module = loaded.get();
    ASSERT_TRUE(succeeded(stream->launch(work)));
    finish();
    EXPECT_EQ(read(x), all(7));
}

TEST_P(ConformanceDevice, ChecksLaunchesOfALoadedImageTheSame)
{
    const auto loaded = take(device->load(take(module().image())));
    RawKernel work = add_scalar(allocate(), 1);
    work.module = loaded.get();
    std::swap(work.params[0], work.params[1]);
    EXPECT_TRUE(failed_with(stream->launch(work), ErrorCode::invalid_argument, "parameter 0"));
    work.kernel = "subtract";
    EXPECT_TRUE(failed_with(stream->launch(work), ErrorCode::invalid_argument, "add_scalar"));
}

TEST_P(ConformanceDevice, RefusesAnImageThatIsNone)
{
    const Bytes noise(100, std::byte{7});
    EXPECT_TRUE(failed_with(device->load(noise), ErrorCode::stale));
    EXPECT_FALSE(device->load({}).has_value());
}

TEST_P(ConformanceDevice, TellsSourcesAndOptionsApartByTheirOrigin)
{
    const auto again = take(device->compiler().compile(GetParam().program, ""));
    const auto other = take(device->compiler().compile(GetParam().program, "-DX=1"));
    const auto longer = take(device->compiler().compile(GetParam().program + "\n", ""));
    EXPECT_EQ(module().origin(), again->origin());
    EXPECT_NE(module().origin(), other->origin());
    EXPECT_NE(module().origin(), longer->origin());
    EXPECT_NE(module().origin(), Digest{});
}

} // namespace
} // namespace warmgraph::backends::test::conformance_device_test
