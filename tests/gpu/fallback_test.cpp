// Promise G1 on a real device: when the driver refuses a call, only the cache loses something; the caller's result
// stays right.
#include <algorithm>

#include "cache_options.hpp"
#include "native.hpp"
#include "temp_dir.hpp"
#include "warmgraph/store/local_store.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::fallback_test {
namespace {

constexpr const char* k_kernels = R"(
extern "C" __global__ void add_one(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += 1; })";
constexpr std::int64_t k_count = 1024;

class Fallback : public testing::Test {
protected:
    [[nodiscard]] CacheOptions options() const { return cache_options("fallback", dir.path() / "cache"); }
    [[nodiscard]] Function wrap(Cache& cache, int nodes) const
    {
        Spec spec;
        spec.states = {state("y", y)};
        spec.code = {program};
        return cache.wrap("add", device, spec, [this, nodes](Recorder& r) {
            for (int i = 0; i < nodes; ++i)
                r.stream().launch(program, "add_one", {.grid = {8, 1, 1}, .block = {128, 1, 1}}, r["y"],
                                  static_cast<std::int32_t>(k_count));
        });
    }
    [[nodiscard]] std::vector<float> result() const
    {
        device.synchronize();
        return y.read<float>();
    }
    /// In every entry, replaces the images by other bytes with right digests and seals, as if the entry was recorded
    /// with them.
    void replace_images(const Bytes& image)
    {
        auto store = *store::LocalStore::open(dir.path() / "cache");
        const auto functions = *store->functions();
        ASSERT_EQ(functions.size(), 1U);
        const auto variants = *store->variants(functions[0]);
        for (const auto& variant : variants) {
            store::Entry entry = **store->entry({functions[0], variant.guards_digest});
            for (auto& reference : entry.graph.images) {
                reference.digest = sha256(image);
                reference.size = image.size();
                reference.variables.clear();
            }
            ASSERT_TRUE(store->publish_image(image).has_value());
            ASSERT_TRUE(store->publish(entry).has_value());
        }
    }

    TempDir dir;
    Device device{"cuda:0"};
    Program program = device.program("add", k_kernels);
    Buffer y = device.upload<float>(std::vector<float>(k_count, 0.0F));
};

TEST_F(Fallback, AnImageThatTheDriverRefusesRunsTheFunctionAndSaysWhy)
{
    {
        Cache cache{options()};
        ASSERT_EQ(wrap(cache, 3)({}), Outcome::recorded);
        ASSERT_EQ(result(), std::vector<float>(k_count, 3.0F));
    }
    // The architecture of a cubin is in the flags of its ELF header. Here sm_90 becomes sm_50, which no supported
    // driver runs on this device.
    Bytes other = Native::compile(k_kernels);
    for (const std::size_t at : {48U, 49U, 50U})
        if (std::to_integer<int>(other[at]) == 90) other[at] = std::byte{50};
    replace_images(other);

    Cache cache{options()};
    Function f = wrap(cache, 3);
    const Outcome outcome = f({});
    EXPECT_NE(outcome, Outcome::replayed);
    EXPECT_EQ(result(), std::vector<float>(k_count, 6.0F));
    EXPECT_EQ(cache.statistics().cache_faults, 1U);
    EXPECT_FALSE(cache.statistics().of(ArtifactKind::entries).miss_reasons.empty());
    EXPECT_EQ(f({}), outcome == Outcome::recorded ? Outcome::replayed : outcome);
    EXPECT_EQ(result(), std::vector<float>(k_count, 9.0F));
}

TEST_F(Fallback, AnImageThatIsNoDeviceCodeRunsTheFunction)
{
    {
        Cache cache{options()};
        ASSERT_EQ(wrap(cache, 3)({}), Outcome::recorded);
    }
    replace_images(Bytes(4096, std::byte{0x5A}));
    Cache cache{options()};
    Function f = wrap(cache, 3);
    EXPECT_NE(f({}), Outcome::replayed);
    EXPECT_EQ(result(), std::vector<float>(k_count, 6.0F));
    EXPECT_EQ(cache.statistics().cache_faults, 1U);
}

/// Allocates all device memory, in pieces of decreasing size down to the smallest that the driver gives.
class Hog {
public:
    Hog()
    {
        const Native& native = Native::instance();
        for (std::uint64_t piece = 64ULL << 30; piece >= 2ULL << 20;) {
            CUdeviceptr memory = 0;
            if (native.driver().cuMemAlloc(&memory, piece) == CUDA_SUCCESS)
                m_memory.push_back(memory);
            else
                piece /= 2;
        }
    }
    ~Hog()
    {
        for (const CUdeviceptr memory : m_memory) static_cast<void>(Native::instance().driver().cuMemFree(memory));
    }
    Hog(const Hog&) = delete;
    Hog& operator=(const Hog&) = delete;

private:
    std::vector<CUdeviceptr> m_memory;
};

TEST_F(Fallback, NoMemoryToInstantiateRunsTheFunction)
{
    constexpr int k_nodes = 20'000;
    {
        Cache cache{options()};
        ASSERT_EQ(wrap(cache, k_nodes)({}), Outcome::recorded);
        ASSERT_EQ(result(), std::vector<float>(k_count, static_cast<float>(k_nodes)));
    }
    Cache cache{options()};
    Function f = wrap(cache, k_nodes);
    {
        Buffer warm = device.allocate(4096); // also loads the code that the function itself needs
        device.stream().launch(program, "add_one", {.grid = {8, 1, 1}, .block = {128, 1, 1}}, warm.memory().address,
                               static_cast<std::int32_t>(k_count));
        device.synchronize();
        const Hog hog;
        const Outcome outcome = f({});
        EXPECT_EQ(result(), std::vector<float>(k_count, 2.0F * k_nodes));
        EXPECT_EQ(outcome, Outcome::refused);
        EXPECT_THAT(f.report().reason, AnyOf(HasSubstr("OUT_OF_MEMORY"), HasSubstr("half of the free memory")));
        EXPECT_EQ(cache.statistics().cache_faults, 1U);
    }
    f({});
    EXPECT_EQ(result(), std::vector<float>(k_count, 3.0F * k_nodes));

    Cache later{options()}; // the entry must be unchanged
    Function g = wrap(later, k_nodes);
    EXPECT_EQ(g({}), Outcome::replayed) << g.report().reason;
    EXPECT_EQ(result(), std::vector<float>(k_count, 4.0F * k_nodes));
}

} // namespace
} // namespace warmgraph::test::fallback_test
