// Promise G2: a restored function is called 10,000 times with other shapes, and with buffers at random places and
// alignments in one big buffer. Bytes that the function does not write stay unchanged. One process records, and another
// replays, with and without compute-sanitizer. This test is built twice, like cuda_facade_test.cpp.
#include <array>
#include <cstdio>
#include <random>
#include <stdexcept>

#include "cache_options.hpp"
#include "cuda_or_fake.hpp"
#include "lacking.hpp"
#include "memcheck.hpp"
#include "run_self.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::cuda_moved_calls_test {
namespace {

using std::int32_t;

constexpr std::array<std::int64_t, 5> k_shapes{1, 33, 256, 1000, 4096};
constexpr std::uint64_t k_room = 1U << 20U;
constexpr std::uint32_t k_seed = 20261121;
constexpr int k_rounds = 10'000;

class Room {
public:
    Room(const std::string& folder, Policy policy) : m_cache(options(folder, policy))
    {
        for (auto& value : m_initial) value = static_cast<int32_t>(m_random() % 1000);
        reset();
    }

    /// Records with the weakest alignment, so that all other calls satisfy the guard.
    void record()
    {
        for (const std::int64_t count : k_shapes) call(count, 4, 32772, 65540, Outcome::recorded);
    }

    void move_about()
    {
        int calls = 0;
        for (int round = 0; calls < k_rounds; ++round) {
            const std::int64_t count = k_shapes[m_random() % k_shapes.size()];
            const std::uint64_t bytes = bytes_of(count), alignment = 4U << (m_random() % 7);
            const auto place = [&] { return m_random() % ((k_room - bytes) / alignment) * alignment; };
            const std::uint64_t a = place(), b = place(), y = place();
            const auto apart = [&](std::uint64_t p, std::uint64_t q) { return p + bytes <= q || q + bytes <= p; };
            if (!apart(a, b) || !apart(a, y) || !apart(b, y)) continue; // with an overlap the guards would differ
            call(count, a, b, y, Outcome::replayed);
            if (++calls % 20 == 0) { // up to 20 sums of numbers up to 999 stay below 2^31
                compare(round);
                reset();
            }
        }
        compare(k_rounds);
    }

    /// Calls with a b whose last 3,900 bytes are past the end of the room.
    void read_beyond()
    {
        enqueue(1000, 0, k_room - 100, 65536);
        m_device.synchronize();
    }

private:
    static std::uint64_t bytes_of(std::int64_t count) { return static_cast<std::uint64_t>(count) * 4; }
    static CacheOptions options(const std::string& folder, Policy policy)
    {
        return cache_options("moved", folder, policy);
    }
    /// The function y = a + b. It goes through scratch memory and a copy, so that the graph has every kind of slot.
    [[nodiscard]] Function wrap()
    {
        Spec spec;
        spec.inputs = {input("a", i32, {k_shapes[0]}), input("b", i32, {k_shapes[0]})};
        spec.outputs = {output("y", i32, {k_shapes[0]})};
        spec.code = {m_program};
        return m_cache.wrap("add", m_device, spec, [this](Recorder& r) {
            const auto count = static_cast<int32_t>(r.sizes("a")[0]);
            const Address sum = r.alloc("sum", bytes_of(count));
            const Launch launch{.grid = {static_cast<std::uint32_t>(count + 127) / 128}, .block = {128}};
            r.stream().launch(m_program, "add", launch, sum, r["a"], r["b"], count);
            r.stream().copy(r["y"], sum, bytes_of(count));
        });
    }
    /// Calls the function. The offsets of a, b and y are in bytes.
    Outcome enqueue(std::int64_t count, std::uint64_t a, std::uint64_t b, std::uint64_t y)
    {
        const auto at = [&](std::uint64_t offset) {
            return Tensor{MemoryRef{m_memory.memory().address + offset, bytes_of(count)}, i32, {count}, {}};
        };
        return m_function({{"a", at(a)}, {"b", at(b)}, {"y", at(y)}});
    }
    void call(std::int64_t count, std::uint64_t a, std::uint64_t b, std::uint64_t y, Outcome expected)
    {
        if (enqueue(count, a, b, y) != expected) throw std::runtime_error(m_function.report().reason);
        for (std::uint64_t i = 0; i < bytes_of(count) / 4; ++i)
            m_expected[y / 4 + i] = m_expected[a / 4 + i] + m_expected[b / 4 + i];
    }
    void reset()
    {
        m_memory.write(m_initial);
        m_expected = m_initial;
    }
    /// Compares every byte of the room with the expected byte.
    void compare(int round)
    {
        m_device.synchronize();
        if (m_memory.read<int32_t>() != m_expected)
            throw std::runtime_error("wrong contents, seed " + std::to_string(k_seed) + ", round " +
                                     std::to_string(round));
    }

    std::mt19937 m_random{k_seed};
    std::vector<int32_t> m_initial = std::vector<int32_t>(k_room / 4), m_expected;
    Device m_device{(choose_driver(), "cuda:0")};
    Program m_program = m_device.program("small", k_program);
    Buffer m_memory = m_device.allocate(k_room);
    Cache m_cache;
    Function m_function = wrap();
};

int child(const std::string& mode, const std::string& folder)
{
    try {
        if (mode == "record")
            Room{folder, Policy::read_write}.record();
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

#ifndef WARMGRAPH_FAKE_CUDA
TEST(MovedCalls, TenThousandAreCleanUnderMemcheck)
{
    const auto prefix = memcheck();
    if (prefix.empty()) WARMGRAPH_SKIP_LACKING("compute-sanitizer");
    const TempDir folder;
    ASSERT_EQ(run_self({"record", folder.path().string()}), 0);
    EXPECT_EQ(run_self({"move", folder.path().string()}, prefix), 0);
    // compute-sanitizer must also find errors inside replayed graphs.
    EXPECT_EQ(run_self({"beyond", folder.path().string()}, prefix), k_memcheck_status);
}
#endif

} // namespace
} // namespace warmgraph::test::cuda_moved_calls_test

int main(int argc, char** argv)
{
    if (argc == 4 && std::string_view{argv[1]} == "--child")
        return warmgraph::test::cuda_moved_calls_test::child(argv[2], argv[3]);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
