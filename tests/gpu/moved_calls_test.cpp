// G2: a restored function whose buffers move, 10,000 times: random places and alignments in one big buffer, and everything
// that is not written is as it was. Recorded in one process, replayed in another, bare and under compute-sanitizer.
#include <cstdio>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "lacking.hpp"
#include "memcheck.hpp"
#include "run_self.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {
namespace {

constexpr const char* k_kernels = R"(
extern "C" __global__ void add(const float* a, const float* b, float* y, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[i] + factor * b[i];
})";
constexpr std::int64_t k_count = 1000;
constexpr std::uint64_t k_bytes = k_count * 4;
constexpr std::uint64_t k_room = 1U << 20U;
constexpr std::uint32_t k_seed = 20261121;
constexpr int k_rounds = 10'000;
constexpr Launch k_launch{.grid = {8, 1, 1}, .block = {128, 1, 1}};

class Room {
public:
    Room(const std::string& folder, Policy policy) : m_cache(options(folder, policy))
    {
        for (auto& value : m_initial) value = static_cast<float>(m_random() % 1000);
        reset();
    }

    /// The offsets of a, b and y in bytes.
    void call(std::uint64_t a, std::uint64_t b, std::uint64_t y, Outcome expected)
    {
        const MemoryRef base = m_memory.memory();
        const Outcome outcome = m_function({{"a", MemoryRef{base.address + a, k_bytes}},
                                            {"b", MemoryRef{base.address + b, k_bytes}},
                                            {"y", MemoryRef{base.address + y, k_bytes}}});
        if (outcome != expected) throw std::runtime_error(m_function.report().reason);
        for (std::uint64_t i = 0; i < k_count; ++i)
            m_expected[y / 4 + i] = m_expected[a / 4 + i] + 2.0F * m_expected[b / 4 + i];
    }

    void move_about()
    {
        int calls = 0;
        for (int round = 0; round < k_rounds; ++round) {
            const std::uint64_t alignment = 4U << (m_random() % 7);
            const auto place = [&] { return m_random() % ((k_room - k_bytes) / alignment) * alignment; };
            const std::uint64_t a = place(), b = place(), y = place();
            const auto apart = [](std::uint64_t p, std::uint64_t q) { return p + k_bytes <= q || q + k_bytes <= p; };
            if (!apart(a, b) || !apart(a, y) || !apart(b, y)) continue; // other guards
            call(a, b, y, Outcome::replayed);
            ++calls;
            if (round % 50 == 0) { // keeps the numbers finite
                compare(round);
                reset();
            }
        }
        compare(k_rounds);
        if (calls < 9000) throw std::runtime_error("only " + std::to_string(calls) + " calls were made");
    }

    /// Reads b's last 3,900 bytes behind the end of the room.
    void read_beyond()
    {
        const MemoryRef base = m_memory.memory();
        static_cast<void>(m_function({{"a", MemoryRef{base.address, k_bytes}},
                                      {"b", MemoryRef{base.address + (k_room - 100), k_bytes}},
                                      {"y", MemoryRef{base.address + 4 * k_bytes, k_bytes}}}));
        m_device.synchronize();
    }

private:
    static CacheOptions options(const std::string& folder, Policy policy)
    {
        CacheOptions result;
        result.model = "moved";
        result.cache_dir = folder;
        result.world_size = 1;
        result.global_rank = 0;
        result.policy = policy;
        return result;
    }
    /// y = a + 2 b through scratch memory and a copy, so that every kind of slot is there.
    [[nodiscard]] Function wrap()
    {
        Spec spec;
        spec.inputs = {input("a", f32, {k_count}), input("b", f32, {k_count})};
        spec.outputs = {output("y", f32, {k_count})};
        spec.code = {m_program};
        return m_cache.wrap("add", m_device, spec, [this](Recorder& r) {
            const Address sum = r.alloc("sum", k_bytes);
            r.stream().launch(m_program, "add", k_launch, r["a"], r["b"], sum, static_cast<std::int32_t>(k_count),
                              2.0F);
            r.stream().copy(r["y"], sum, k_bytes);
        });
    }
    void reset()
    {
        m_memory.write(m_initial);
        m_expected = m_initial;
    }
    /// Every byte of the room.
    void compare(int round)
    {
        m_device.synchronize();
        if (m_memory.read<float>() != m_expected)
            throw std::runtime_error("wrong contents, seed " + std::to_string(k_seed) + ", round " +
                                     std::to_string(round));
    }

    std::mt19937 m_random{k_seed};
    std::vector<float> m_initial = std::vector<float>(k_room / 4), m_expected;
    Device m_device{"cuda:0"};
    Program m_program = m_device.program("add", k_kernels);
    Buffer m_memory = m_device.allocate(k_room);
    Cache m_cache;
    Function m_function = wrap();
};

int child(const std::string& mode, const std::string& folder)
{
    try {
        if (mode == "record") // at the weakest alignment, which every other call's satisfies
            Room{folder, Policy::read_write}.call(4, 8196, 16388, Outcome::recorded);
        else if (mode == "move")
            Room{folder, Policy::require_hit}.move_about();
        else
            Room{folder, Policy::require_hit}.read_beyond();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", mode.c_str(), error.what());
        return 1;
    }
}

TEST(MovedCalls, TenThousandTouchExactlyTheirBuffers)
{
    const TempDir folder;
    ASSERT_EQ(run_self({"record", folder.path().string()}), 0);
    EXPECT_EQ(run_self({"move", folder.path().string()}), 0);
}

TEST(MovedCalls, TenThousandAreCleanUnderMemcheck)
{
    const auto prefix = memcheck();
    if (prefix.empty()) WARMGRAPH_SKIP_LACKING("compute-sanitizer");
    const TempDir folder;
    ASSERT_EQ(run_self({"record", folder.path().string()}), 0);
    EXPECT_EQ(run_self({"move", folder.path().string()}, prefix), 0);
    // And it looks into replayed graphs at all.
    EXPECT_EQ(run_self({"beyond", folder.path().string()}, prefix), k_memcheck_status);
}

} // namespace
} // namespace warmgraph::test

int main(int argc, char** argv)
{
    if (argc == 4 && std::string_view{argv[1]} == "--child") return warmgraph::test::child(argv[2], argv[3]);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
