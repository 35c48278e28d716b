// Compares a restored graph with the same work captured and instantiated by the driver, in one process: time of a
// replay, and the host's cost of a call.
#include <array>
#include <optional>
#include <stdexcept>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "cuda_bench.hpp"
#include "cuda_chain.hpp"
#include "native_graph.hpp"
#include "once.hpp"
#include "temp_dir.hpp"
#include "timing.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_rounds = 15;

/// One chain twice, restored from a file and native, over the same memory. Different memory would matter more than the
/// measured difference, because a few KB may be near the other half of the L2 cache.
class Pair {
public:
    explicit Pair(std::uint32_t nodes) : m_nodes(nodes)
    {
        record();
        m_cache.emplace(open_cache(m_folder.path(), Policy::require_hit));
        m_restored.emplace(wrap(*m_cache));
        call();
        m_stream.synchronize();
        expect_replayed(*m_restored);
        expect_same_result();
    }

    void call() { call(m_shared.x, ChainDevice::k_position); }
    void call(const Buffer& x, std::int32_t position)
    {
        (*m_restored)(m_stream, {{"x", x}, {"y", m_shared.y}, {"position", position}});
    }
    void launch_native() const { m_native->launch(); }
    void launch_other_native() const { m_other_native->launch(); }
    void rewrite_native() const { m_native->rewrite(); }
    void synchronize() { m_stream.synchronize(); }
    [[nodiscard]] const ChainDevice& shared() const noexcept { return m_shared; }

private:
    [[nodiscard]] Function wrap(Cache& cache)
    {
        Spec spec = chain_spec(m_shared);
        spec.states = {state("even", m_even), state("odd", m_odd)};
        return cache.wrap(fmt::format("chain{}", m_nodes), m_shared.device, std::move(spec), [this](Recorder& r) {
            enqueue_chain(r.stream(), m_shared.program, m_nodes, 0, r["x"], r["y"], {r["even"], r["odd"]},
                          r.scalar<std::int32_t>("position"));
        });
    }

    /// Also captures the native graph, because here the program was compiled and run.
    void record()
    {
        Cache cache = open_cache(m_folder.path(), Policy::read_write);
        Function function = wrap(cache);
        function(m_stream, {{"x", m_shared.x}, {"y", m_shared.y}, {"position", ChainDevice::k_position}});
        m_stream.synchronize();
        const Report report = function.report();
        if (report.outcome != Outcome::recorded) throw std::runtime_error("not recorded: " + report.reason);
        const auto enqueue = [&] {
            enqueue_chain(m_stream, m_shared.program, m_nodes, 0, m_shared.x.memory().address,
                          m_shared.y.memory().address, {m_even.memory().address, m_odd.memory().address},
                          ChainDevice::k_position);
        };
        static_cast<void>(driver()); // makes the context current
        enqueue();
        m_stream.synchronize();
        m_native.emplace(m_stream.native(), enqueue);
        m_other_native.emplace(m_stream.native(), enqueue);
    }

    void expect_same_result()
    {
        const auto restored = m_shared.y.read<float>();
        m_shared.y.write<float>(std::vector<float>(restored.size(), -1.0F));
        launch_native();
        m_stream.synchronize();
        if (m_shared.y.read<float>() != restored)
            throw std::runtime_error("the restored graph and the native one give different results");
    }

    test::TempDir m_folder;
    std::uint32_t m_nodes;
    ChainDevice m_shared;
    Stream m_stream = m_shared.device.stream();
    Buffer m_even = m_shared.device.allocate(ChainDevice::k_items * sizeof(float));
    Buffer m_odd = m_shared.device.allocate(ChainDevice::k_items * sizeof(float));
    std::optional<NativeGraph> m_native, m_other_native;
    std::optional<Cache> m_cache;
    std::optional<Function> m_restored;
};

/// Mean milliseconds of one replay, from its launch to its end, over many replays in a row.
template <class Launch>
double replay_ms(Pair& pair, Launch launch)
{
    constexpr int k_launches = 100;
    launch();
    pair.synchronize();
    const SteadyTime begin = now();
    for (int i = 0; i < k_launches; ++i) launch();
    pair.synchronize();
    return milliseconds_since(begin) / k_launches;
}

void cuda_replay(benchmark::State& state)
{
    once(state, "cuda_replay", [&] {
        Pair pair{static_cast<std::uint32_t>(state.range(0))};
        std::vector<double> native, restored, ratio;
        for (int round = 0; round < k_rounds; ++round) {
            native.push_back(replay_ms(pair, [&] { pair.launch_native(); }));
            restored.push_back(replay_ms(pair, [&] { pair.call(); }));
            ratio.push_back(restored.back() / native.back());
        }
        state.counters["native_ms"] = median(native);
        state.counters["restored_ms"] = median(restored);
        state.counters["ratio"] = median(ratio);
    });
}

/// Median microseconds that the host takes to enqueue, with an empty stream before each call.
template <class Enqueue>
double host_us(Pair& pair, Enqueue enqueue)
{
    constexpr int k_calls = 200;
    enqueue(-1); // removes the bindings of the previous step
    pair.synchronize();
    std::vector<double> took;
    for (int i = 0; i < k_calls; ++i) {
        const SteadyTime begin = now();
        enqueue(i);
        took.push_back(1000.0 * milliseconds_since(begin));
        pair.synchronize();
    }
    return median(took);
}

void cuda_calls(benchmark::State& state)
{
    once(state, "cuda_calls", [&] {
        Pair pair{static_cast<std::uint32_t>(state.range(0))};
        const ChainDevice& shared = pair.shared();
        const auto nodes = static_cast<double>(state.range(0));
        std::vector<double> native, other, steady, over, moved, scalar, rewritten;
        for (int round = 0; round < k_rounds; ++round) {
            native.push_back(host_us(pair, [&](int) { pair.launch_native(); }));
            steady.push_back(host_us(pair, [&](int) { pair.call(); }));
            over.push_back(steady.back() - native.back());
            other.push_back(host_us(pair, [&](int) { pair.launch_other_native(); }) - native.back());
            const double with_move =
                host_us(pair, [&](int i) { pair.call(i % 2 == 0 ? shared.other : shared.x, ChainDevice::k_position); });
            moved.push_back((with_move - steady.back()) / nodes);
            const double with_scalar = host_us(pair, [&](int i) { pair.call(shared.x, 10 + i); });
            scalar.push_back((with_scalar - steady.back()) / nodes);
            const double with_rewrite = host_us(pair, [&](int) {
                pair.rewrite_native();
                pair.launch_native();
            });
            rewritten.push_back((with_rewrite - native.back()) / nodes);
        }
        state.counters["native_us"] = median(native);
        state.counters["steady_us"] = median(steady);
        state.counters["over_us"] = median(over);
        state.counters["other_native_us"] = median(other);
        state.counters["moved_us_per_node"] = median(moved);
        state.counters["scalar_us_per_node"] = median(scalar);
        state.counters["rewritten_us_per_node"] = median(rewritten);
    });
}

} // namespace

void register_cuda_replay()
{
    benchmark::RegisterBenchmark("cuda_replay", cuda_replay)->Arg(182)->Arg(1000)->Iterations(1);
    benchmark::RegisterBenchmark("cuda_calls", cuda_calls)->Arg(1)->Arg(182)->Iterations(1);
}

} // namespace warmgraph::bench
