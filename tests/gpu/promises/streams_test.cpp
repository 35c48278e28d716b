// Calls inside the caller's own capture, and work that goes past the recorder's stream.
#include "promise_fixture.hpp"

namespace warmgraph::test::streams_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
extern "C" __global__ void advance(int* counter, const int* x, int* y) { int i = INDEX; y[i] = x[i] + counter[i]; counter[i] += 1; }
extern "C" __global__ void add(const int* x, int amount, int* y) { int i = INDEX; y[i] = x[i] + amount; })";

class PromisedStreams : public GpuPromise {
protected:
    [[nodiscard]] static CUstream handle(Stream& stream) { return static_cast<CUstream>(stream.native()); }
    /// What `work` enqueues in the stream, as the driver's own instance.
    template <class Work>
    [[nodiscard]] CUgraphExec captured(CUstream stream, Work&& work) const
    {
        native.check(native.driver().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     "cuStreamBeginCapture");
        work();
        CUgraph graph = nullptr;
        native.check(native.driver().cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
        CUgraphExec exec = nullptr;
        native.check(native.driver().cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
        native.check(native.driver().cuGraphDestroy(graph), "cuGraphDestroy");
        return exec;
    }
    void launch_graph(CUgraphExec exec, CUstream stream) const
    {
        native.check(native.driver().cuGraphLaunch(exec, stream), "cuGraphLaunch");
    }
    void destroy(CUgraphExec exec) const
    {
        native.check(native.driver().cuGraphExecDestroy(exec), "cuGraphExecDestroy");
    }
    /// With scratch, which the caller's graph must not share with later calls.
    [[nodiscard]] Function advance(Cache& cache, const std::string& name, const Buffer& counter)
    {
        Spec declared = spec(program);
        declared.states = {state("counter", counter)};
        return cache.wrap(name, device, declared, [this](Recorder& r) {
            const Address scratch = r.alloc("scratch", k_bytes);
            r.stream().launch(program, "add", k_launch, r["x"], std::int32_t{1}, scratch);
            r.stream().launch(program, "advance", k_launch, r["counter"], scratch, r["y"]);
        });
    }
    Program program = device.program("streams", k_source);
};

TEST_F(PromisedStreams, ACallInsideTheCallersCaptureAfterOneInAnotherStreamIsPartOfHisGraph)
{
    expect_native(
        [this](Cache& cache, Seen& seen) {
            Stream one = device.stream(), other = device.stream();
            Buffer x = words(5);
            const Buffer y = filled(-1), counter = filled(0);
            Function f = advance(cache, "captured", counter);
            note(seen, f(one, {{"x", x}, {"y", y}}), f, {&y, &counter});
            Outcome inside = Outcome::refused;
            const CUgraphExec exec = captured(handle(other), [&] { inside = f(other, {{"x", x}, {"y", y}}); });
            note(seen, inside, f, {&y, &counter});
            for (const int first : {5, 70}) { // his graph reads what is there when it runs
                x.write(std::vector<std::int32_t>(k_count, first));
                launch_graph(exec, handle(other));
                note_results(seen, {&y, &counter});
            }
            note(seen, f(one, {{"x", x}, {"y", y}}), f, {&y, &counter});
            note(seen, f(other, {{"x", x}, {"y", y}}), f, {&y, &counter});
            launch_graph(exec, handle(other));
            note_results(seen, {&y, &counter});
            destroy(exec);
        },
        ElementsAre("recorded", "eager", "replayed", "replayed"));
}

TEST_F(PromisedStreams, TheFirstCallOfAllMayBeInsideTheCallersCapture)
{
    expect_native(
        [this](Cache& cache, Seen& seen) {
            Stream stream = device.stream();
            const Buffer x = words(5), y = filled(-1), counter = filled(0);
            Function f = advance(cache, "captured_first", counter);
            Outcome inside = Outcome::refused;
            const CUgraphExec exec = captured(handle(stream), [&] { inside = f(stream, {{"x", x}, {"y", y}}); });
            note(seen, inside, f, {&counter});
            launch_graph(exec, handle(stream));
            note_results(seen, {&y, &counter});
            for (int i = 0; i < 3; ++i) note(seen, f(stream, {{"x", x}, {"y", y}}), f, {&y, &counter});
            launch_graph(exec, handle(stream));
            note_results(seen, {&y, &counter});
            destroy(exec);
        },
        ElementsAre("eager", "recorded", "replayed", "replayed"));
}

TEST_F(PromisedStreams, WorkOnTheLegacyDefaultStreamIsRefusedAndHarmsNobody)
{
    for (const CUstream legacy : {CUstream{nullptr}, CU_STREAM_LEGACY}) // NOLINT: the header's cast
        expect_refused(
            [this, legacy](Cache& cache, Seen& seen) {
                const Code code{k_source};
                const Buffer x = words(5), y = filled(-1), counter = filled(0);
                Spec declared = plain_spec();
                declared.states = {state("counter", counter)};
                Function f = cache.wrap(legacy == nullptr ? "null" : "legacy", device, declared, [&](Recorder& r) {
                    void *from = r["x"].pointer(), *to = r["y"].pointer(), *at = r["counter"].pointer();
                    launch(legacy, code["advance"], {&at, &from, &to});
                });
                for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
            },
            testing::AllOf(HasSubstr("past the recorder's stream"), HasSubstr("in the legacy default stream")));
}

TEST_F(PromisedStreams, ASynchronousCopyInsideTheCallableIsRefusedAndHarmsNobody)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("copies", device, plain_spec(), [&](Recorder& r) {
                native.check(native.driver().cuMemcpy(r["y"].flat(), r["x"].flat(), k_bytes), "cuMemcpy");
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        HasSubstr("past the recorder's stream"));
}

TEST_F(PromisedStreams, AGraphThatTheCallableLaunchesIsRefusedAndHarmsNobody)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Code code{k_source};
            const Buffer x = words(5), y = filled(-1), counter = filled(0);
            CUstream stream = native.stream();
            void *from = x.memory().address.pointer(), *to = y.memory().address.pointer(),
                 *at = counter.memory().address.pointer();
            const CUgraphExec exec = captured(stream, [&] { launch(stream, code["advance"], {&at, &from, &to}); });
            Spec declared = plain_spec();
            declared.states = {state("counter", counter)};
            Function f = cache.wrap("graph", device, declared, [&](Recorder& r) { launch_graph(exec, stream_of(r)); });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
            destroy(exec);
        },
        testing::AllOf(HasSubstr("past the recorder's stream"), HasSubstr("cuGraphLaunch of a graph")));
}

} // namespace
} // namespace warmgraph::test::streams_test
