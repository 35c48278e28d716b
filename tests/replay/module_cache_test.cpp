// Tests that a process loads each image only once, whichever cache needs it, and that the image is unloaded when its
// last user is gone.
#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph::replay::module_cache_test {
namespace {

class ModuleCacheTest : public testing::Test {
protected:
    ModuleCacheTest() : small(image_of("add_scalar")), other(image_of("scale")) {}

    /// A stored program, found by its name.
    struct Stored {
        Bytes bytes;
        cachefmt::ImageRef ref;
    };
    [[nodiscard]] Stored image_of(const std::string& name) const
    {
        const auto module = device->compiler().compile("kernel " + name + "(memory x, value amount, value n)\n", "");
        Stored result{*(*module)->image(), {}};
        result.ref = {sha256(result.bytes), result.bytes.size(), {}, name};
        return result;
    }
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> load(ModuleCache& cache, const Stored& image)
    {
        return cache.load(device, image.ref, {}, [this, &image]() -> Result<Bytes> {
            ++reads;
            return image.bytes;
        });
    }
    [[nodiscard]] std::int64_t live() const { return fake->live().modules; }

    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
    std::shared_ptr<backends::Device> device = *fake->open("0");
    Stored small, other;
    std::atomic<int> reads = 0;
};

TEST_F(ModuleCacheTest, TwoCachesShareAnImage)
{
    const auto before = live();
    ModuleCache one, two;
    const auto first = load(one, small);
    const auto second = load(two, small);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(*first, *second);
    EXPECT_EQ(reads, 1);
    EXPECT_EQ(live(), before + 1);
    EXPECT_EQ(two.count(), 1U);
    ASSERT_TRUE(load(two, other));
    EXPECT_EQ(two.count(), 2U);
    EXPECT_EQ(one.count(), 1U);
}

TEST_F(ModuleCacheTest, AnImageGoesWithTheLastWhoHasIt)
{
    const auto before = live();
    auto one = std::make_unique<ModuleCache>(), two = std::make_unique<ModuleCache>();
    ASSERT_TRUE(load(*one, small) && load(*two, small));
    one.reset();
    EXPECT_EQ(live(), before + 1);
    auto held = load(*two, small);
    two.reset();
    EXPECT_EQ(live(), before + 1) << "somebody launches it";
    held = fail(ErrorCode::not_found, "released");
    EXPECT_EQ(live(), before);
    ModuleCache three;
    ASSERT_TRUE(load(three, small));
    EXPECT_EQ(reads, 2) << "loaded anew";
}

TEST_F(ModuleCacheTest, TheSameImageOnAnotherDeviceIsAnotherModule)
{
    const auto fakes = backends::make_fake_backend();
    const auto elsewhere = *fakes->open("0");
    ModuleCache cache;
    const auto here = load(cache, small);
    const auto there = cache.load(elsewhere, small.ref, {}, [this]() -> Result<Bytes> { return small.bytes; });
    ASSERT_TRUE(here && there);
    EXPECT_NE(*here, *there);
}

TEST_F(ModuleCacheTest, WhatFailedIsTriedAgain)
{
    ModuleCache cache;
    const auto missing =
        cache.load(device, small.ref, {}, []() -> Result<Bytes> { return fail(ErrorCode::not_found, "gone"); });
    EXPECT_TRUE(failed_with(missing, ErrorCode::not_found));
    EXPECT_EQ(cache.count(), 0U);
    ASSERT_TRUE(load(cache, small));
    EXPECT_EQ(cache.count(), 1U);
}

TEST_F(ModuleCacheTest, AnImageThatIsReadSlowlyHoldsUpNoOther)
{
    ModuleCache cache;
    std::latch other_is_loaded{1};
    const std::jthread slow([&] {
        const auto loaded = cache.load(device, small.ref, {}, [&]() -> Result<Bytes> {
            other_is_loaded.wait(); // would hang if loading the other image waited for this one
            return small.bytes;
        });
        EXPECT_TRUE(loaded);
    });
    EXPECT_TRUE(load(cache, other));
    other_is_loaded.count_down();
}

TEST_F(ModuleCacheTest, ThreadsWithCachesOfTheirOwnLoadAnImageOnceWhileOneOfThemLives)
{
    constexpr int k_threads = 8, k_rounds = 50;
    ModuleCache lasting;
    const auto first = load(lasting, small);
    ASSERT_TRUE(first);
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < k_threads; ++i)
            threads.emplace_back([&] {
                for (int round = 0; round < k_rounds; ++round) {
                    ModuleCache cache;
                    EXPECT_EQ(*load(cache, small), *first);
                    EXPECT_TRUE(load(cache, other)); // the other image is loaded and unloaded
                }
            });
    }
    EXPECT_EQ(lasting.count(), 1U);
}

} // namespace
} // namespace warmgraph::replay::module_cache_test
