// Promises C1 and P7: many processes use one folder, while others evict and prune. Every hit must have the right
// contents, and the folder may exceed its budget by at most one entry for each live writer.
#include <atomic>
#include <random>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child_process.hpp"
#include "random_graph.hpp"
#include "store_fixture.hpp"

/// Does nothing: without the wait for the disk, the processes collide more often. power_cut_test.cpp tests which bytes
/// reach the disk.
extern "C" int fsync(int) { return 0; }

namespace warmgraph::test::contention_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int k_operations = 60, k_generations = 3;
#else
constexpr int k_operations = 500, k_generations = 12;
#endif
constexpr int k_processes = 16;

/// Counters that a test shares with its children.
struct Counts {
    std::atomic<int> hits, published, evicted;
    std::atomic<bool> done;
};

class Contention : public StoreTest {
protected:
    Contention()
        : m_counts(new(::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                       Counts{})
    {
    }
    ~Contention() override { ::munmap(m_counts, sizeof(Counts)); }

    /// Whether check finds the folder whole. An image may be removed while an entry that names it is being published.
    /// This is a miss and is allowed, but check must find nothing else.
    bool is_whole()
    {
        const auto damages = open({.access = store::StoreMode::read_only})->check();
        if (!damages) std::fprintf(stderr, "check: %s\n", damages.error().message.c_str());
        if (!damages) return false;
        return std::ranges::all_of(*damages, [](const store::Damage& damage) {
            if (damage.error.code != ErrorCode::not_found)
                std::fprintf(stderr, "%s: %s\n", damage.path.c_str(), damage.error.message.c_str());
            return damage.error.code == ErrorCode::not_found;
        });
    }

    Counts* m_counts;
};

constexpr int k_variants = 24, k_images = 5;

Bytes shared_image(int variant) { return image_of("code " + std::to_string(variant % k_images)); }

/// Makes an entry whose contents follow from the variant and the mark, so that a reader can check a hit.
Entry entry_of(int variant, const std::string& mark)
{
    return make_entry(k_decode, variant, mark, {shared_image(variant)});
}

/// Uses the store once. Returns an error, or "".
std::string use(LocalStore& store, std::mt19937_64& random, Counts& counts)
{
    const int variant = static_cast<int>(random() % k_variants);
    const EntryKey key = entry_of(variant, "").header.key;
    switch (random() % 16) {
    case 0: {
        const auto removed = store.remove(key);
        return removed ? "" : "remove: " + removed.error().message;
    }
    case 1: store.add_usage(k_decode, {.hits = 1}); return "";
    case 2: {
        const auto variants = store.variants(k_decode);
        if (!variants) return "variants: " + variants.error().message;
        for (const auto& each : *variants)
            if (!each.header) return "a variant: " + each.header.error().message;
        return "";
    }
    case 3: {
        const auto lock = store.try_record_lock(key);
        return lock ? "" : "lock: " + lock.error().message;
    }
    case 4: {
        const auto pruned = store.prune({.bytes = 4000});
        if (!pruned) return "prune: " + pruned.error().message;
        counts.evicted += static_cast<int>(pruned->removed.of(store::ArtifactKind::entries).files);
        return "";
    }
    case 5:
    case 6:
    case 7:
    case 8: {
        const auto image = store.publish_image(shared_image(variant));
        if (!image) return "publish an image: " + image.error().message;
        const auto done =
            store.publish(entry_of(variant, std::string(random() % 3000, 'm') + std::to_string(random())));
        if (!done) return "publish: " + done.error().message;
        ++counts.published;
        return "";
    }
    default: break;
    }
    const auto entry = store.entry(key);
    if (!entry) return "entry: " + entry.error().message;
    if (!*entry) return "";
    if (**entry != entry_of(variant, (*entry)->header.info.verification)) return "a hit is another entry";
    const auto image = store.image(sha256(shared_image(variant)));
    if (!image) return "image: " + image.error().message;
    if (*image && **image != shared_image(variant)) return "a hit's image is another one";
    ++counts.hits;
    return "";
}

TEST_F(Contention, EveryHitVerifiesWhileOthersPublishEvictAndPrune)
{
    const std::uint64_t seed = test_seed();
    static_cast<void>(open());
    std::vector<ChildProcess> children;
    for (int p = 0; p < k_processes; ++p)
        children.emplace_back([&, p] {
            std::mt19937_64 random(seed + static_cast<std::uint64_t>(p));
            auto store = open({.max_variants = 16});
            for (int i = 0; i < k_operations; ++i) {
                // Closing the store gives the leases back: otherwise sixteen processes would hold all entries in use,
                // and nothing could be pruned.
                if (random() % 4 == 0) store.reset(), store = open({.max_variants = 16});
                const std::string wrong = use(*store, random, *m_counts);
                if (wrong.empty()) continue;
                std::fprintf(stderr, "process %d, operation %d: %s\n", p, i, wrong.c_str());
                return 1;
            }
            return 0;
        });
    ChildProcess checker([&] { // promise P10: no false alarm
        while (!m_counts->done)
            if (!is_whole()) return 1;
        return 0;
    });
    for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
    m_counts->done = true;
    EXPECT_EQ(checker.wait(), 0);
    EXPECT_GT(m_counts->hits, k_operations);
    EXPECT_GT(m_counts->published, k_operations);
    EXPECT_GT(m_counts->evicted, 0) << "by pruning";
    EXPECT_TRUE(quarantined().empty());
    EXPECT_LE(names_in(folder()).size(), 16U + k_processes + 3U) << "entries, usage, its lock";
    EXPECT_TRUE(is_whole());
}

constexpr std::uint64_t k_budget = 400'000, k_one = 60'000; ///< bytes; an entry with its image is smaller than k_one

class Budget : public Contention {
protected:
    std::uint64_t bytes_held() const
    {
        std::uint64_t bytes = 0;
        std::error_code gone;
        for (fs::recursive_directory_iterator item(m_root, gone), end; item != end; item.increment(gone)) {
            const auto size = item->is_regular_file(gone) ? item->file_size(gone) : 0;
            if (!gone) bytes += size;
            if (gone) gone.clear();
        }
        return bytes;
    }
    /// Publishes one entry in a new process.
    int write_one(int number)
    {
        // A writer prunes for at most a tenth of a second, which is too short on a busy machine. So the test uses a
        // clock on which no time passes.
        const auto store =
            open({.max_variants = 1000, .budget = {.bytes = k_budget}}, posix_file_system(), m_set_clock);
        const Bytes image = image_of(std::string(30'000, 'i') + std::to_string(number));
        if (!store->publish_image(image)) return 1;
        return store->publish(make_entry(k_decode, number, std::string(20'000, 'm'), {image})) ? 0 : 2;
    }
};

TEST_F(Budget, HoldsToWithinOneEntryForEachLivingWriter)
{
    std::uint64_t most = 0;
    for (int generation = 0; generation < k_generations; ++generation) {
        const Gate gate;
        std::vector<ChildProcess> writers;
        for (int p = 0; p < k_processes; ++p)
            writers.emplace_back([&, p] {
                gate.wait();
                return write_one(generation * k_processes + p);
            });
        for (int p = 0; p < k_processes; ++p) gate.open();
        for (ChildProcess& writer : writers) EXPECT_EQ(writer.wait(), 0);
        most = std::max(most, bytes_held());
    }
    EXPECT_LE(most, k_budget + k_processes * k_one);
    EXPECT_GT(most, k_budget / 2) << "hardly anything was kept";
    EXPECT_TRUE(open()->check().value().empty());
    // One more writer runs alone.
    EXPECT_EQ(write_one(1000), 0);
    EXPECT_LE(bytes_held(), k_budget + k_one);
}

} // namespace
} // namespace warmgraph::test::contention_test
