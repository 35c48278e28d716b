// Many threads use one store, and a reader works beside writers.
#include <atomic>
#include <latch>
#include <thread>

#include "store_fixture.hpp"

namespace warmgraph::test::threads_test {
namespace {

constexpr int k_threads = 8;

class Threads : public StoreTest {
protected:
    /// Runs `body(thread number)` in 8 threads that start together.
    template <class Body>
    static void in_threads(Body body)
    {
        std::latch start(k_threads);
        std::vector<std::jthread> threads;
        for (int t = 0; t < k_threads; ++t) {
            threads.emplace_back([&, t] {
                start.arrive_and_wait();
                body(t);
            });
        }
    }
};

TEST_F(Threads, PublishersOfOneKeyNeverShowAPart)
{
    const auto store = open();
    const EntryKey key = make_entry(k_decode).header.key;
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 0, std::string(1000, 'z')))));
    std::atomic<int> failures = 0;
    in_threads([&](int t) {
        for (int round = 0; round < 20; ++round) {
            if (t % 2 == 0) {
                // The entries have different sizes, so that a mixture of two entries would be noticed.
                const Entry entry =
                    make_entry(k_decode, 0, std::string(static_cast<std::size_t>(100 * (t + 1) + round), 'm'));
                if (!store->publish(entry)) ++failures;
            } else {
                const auto entry = store->entry(key);
                if (!entry || !*entry) ++failures;
            }
        }
    });
    EXPECT_EQ(failures, 0);
    EXPECT_TRUE(quarantined().empty());
    EXPECT_EQ(names_in(folder()).size(), 1U);
    EXPECT_TRUE(store->check().value().empty());
}

TEST_F(Threads, PublishersOfManyKeysUnderEvictionKeepTheLimit)
{
    const auto store = open({.max_variants = 4});
    std::atomic<int> failures = 0;
    in_threads([&](int t) {
        for (int round = 0; round < 10; ++round) {
            const int variant = 100 * t + round;
            if (!store->publish(make_entry(k_decode, variant))) ++failures;
            const auto entry = store->entry(make_entry(k_decode, variant).header.key);
            if (!entry || (*entry && **entry != make_entry(k_decode, variant))) ++failures;
        }
    });
    EXPECT_EQ(failures, 0);
    // The limit is an upper bound: publishers that evict at the same time may remove each other's entries. Here all
    // threads have ended.
    for (int variant = 9996; variant <= 9999; ++variant)
        ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, variant))));
    EXPECT_EQ(store->variants(k_decode).value().size(), 4U);
    EXPECT_TRUE(store->check().value().empty());
}

TEST_F(Threads, ShareImagesAndCountUsage)
{
    const auto store = open();
    std::atomic<int> failures = 0;
    in_threads([&](int t) {
        for (int round = 0; round < 10; ++round) {
            const Bytes image = image_of("image " + std::to_string((t + round) % 3));
            if (!store->publish_image(image)) ++failures;
            if (const auto read = store->image(sha256(image)); !read || *read != image) ++failures;
            store->add_usage(k_decode, {.hits = 1});
        }
    });
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(store->images().value().size(), 3U);
    EXPECT_EQ(store->usage(k_decode).hits, 80U);
}

TEST_F(Threads, OneRecordsAtATime)
{
    const auto store = open();
    const EntryKey key = make_entry(k_decode).header.key;
    std::atomic<int> inside = 0;
    std::atomic<int> overlaps = 0;
    std::atomic<int> entered = 0;
    in_threads([&](int) {
        for (int round = 0; round < 100; ++round) {
            const auto lock = store->try_record_lock(key);
            if (!lock || !*lock) continue;
            if (++inside != 1) ++overlaps;
            ++entered;
            --inside;
        }
    });
    EXPECT_EQ(overlaps, 0);
    EXPECT_GT(entered, 0);
    EXPECT_TRUE(names_in(folder()).empty());
}

TEST_F(Threads, PublishWhileTheCacheIsClearedAgainAndAgain)
{
    const auto store = open();
    std::atomic<int> failures = 0;
    in_threads([&](int t) {
        for (int round = 0; round < 10; ++round) {
            if (t == 0) {
                if (!store->clear()) ++failures;
            } else if (const auto entry = store->entry(make_entry(k_decode, t).header.key); !entry) {
                ++failures;
            } else {
                // Folders are removed while the writer works. It makes them again, but only a few times.
                static_cast<void>(store->publish(make_entry(k_decode, t)));
            }
        }
    });
    EXPECT_EQ(failures, 0);
    EXPECT_TRUE(succeeded(store->publish(make_entry(k_decode))));
    EXPECT_TRUE(store->check().value().empty());
}

} // namespace
} // namespace warmgraph::test::threads_test
