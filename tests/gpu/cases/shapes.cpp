// Cases about the structure of graphs: branches, child graphs, many nodes.
#include "../case.hpp"

namespace warmgraph::test {

namespace {

constexpr std::int64_t k_count = 1024;

constexpr const char* k_step = R"(
extern "C" __global__ void step(const float* x, float* y, int k) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = y[i] * 0.5f + x[(i + k) % 1024]; })";

std::vector<Memory> state_and_input()
{
    return {{"x", Memory::Kind::input, f32, k_count}, {"y", Memory::Kind::state, f32, k_count * 4}};
}

void step(Recorder& r, LazyModule& code, CUstream stream, int lane, int k)
{
    void *x = r["x"].pointer(), *y = (r["y"] + static_cast<std::uint64_t>(lane) * k_count * 4).pointer();
    Native::instance().launch(stream, code["step"], k_count / 256, 256, {&x, &y, &k});
}

Case fork_over_four_streams()
{
    auto code = std::make_shared<LazyModule>(k_step);
    auto streams = std::make_shared<std::vector<CUstream>>();
    return {.name = "fork_over_four_streams", .memory = state_and_input(), .work = [code, streams](Recorder& r) {
                const Native& native = Native::instance();
                while (streams->size() < 3) streams->push_back(native.stream());
                CUstream main = native_stream(r.stream());
                step(r, *code, main, 0, 1);
                CUevent forked = native.event();
                native.event_record(forked, main);
                for (int lane = 1; lane < 4; ++lane) {
                    CUstream side = (*streams)[static_cast<std::size_t>(lane - 1)];
                    native.stream_wait(side, forked);
                    for (int i = 0; i < 5; ++i) step(r, *code, side, lane, i + lane);
                    CUevent joined = native.event();
                    native.event_record(joined, side);
                    step(r, *code, main, 0, lane);
                    native.stream_wait(main, joined);
                }
                for (int lane = 0; lane < 4; ++lane) step(r, *code, main, lane, 7);
            }};
}

/// Child graphs that contain child graphs. The driver's API adds them to the captured graph.
Case nested_child_graphs()
{
    auto code = std::make_shared<LazyModule>(k_step);
    return {.name = "nested_child_graphs", .memory = state_and_input(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                CUstream main = native_stream(r.stream());
                step(r, *code, main, 0, 1);
                // A stream capture makes no child graphs, so both levels are built here and added to the captured
                // graph.
                CUstream side = native.stream();
                native.check(native.driver().cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_RELAXED),
                             "cuStreamBeginCapture");
                for (int lane = 1; lane < 3; ++lane) step(r, *code, side, lane, lane);
                CUgraph inner = nullptr;
                native.check(native.driver().cuStreamEndCapture(side, &inner), "cuStreamEndCapture");

                CUgraph middle = nullptr;
                native.check(native.driver().cuGraphCreate(&middle, 0), "cuGraphCreate");
                const auto add_child = native.find<decltype(&cuGraphAddChildGraphNode)>("cuGraphAddChildGraphNode");
                CUgraphNode first = nullptr, second = nullptr;
                native.check(add_child(&first, middle, nullptr, 0, inner), "cuGraphAddChildGraphNode");
                native.check(add_child(&second, middle, &first, 1, inner), "cuGraphAddChildGraphNode");

                CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
                CUgraph whole = nullptr;
                const CUgraphNode* before = nullptr;
                const CUgraphEdgeData* data = nullptr;
                std::size_t count = 0;
                const auto info = native.find<decltype(&cuStreamGetCaptureInfo)>("cuStreamGetCaptureInfo");
                native.check(info(main, &status, nullptr, &whole, &before, &data, &count), "cuStreamGetCaptureInfo");
                if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
                    CUgraphNode child = nullptr;
                    native.check(add_child(&child, whole, before, count, middle), "cuGraphAddChildGraphNode");
                    const auto update =
                        native.find<decltype(&cuStreamUpdateCaptureDependencies)>("cuStreamUpdateCaptureDependencies");
                    native.check(update(main, &child, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                                 "cuStreamUpdateCaptureDependencies");
                } else { // without a capture, the same work is enqueued directly
                    for (int repeat = 0; repeat < 2; ++repeat)
                        for (int lane = 1; lane < 3; ++lane) step(r, *code, main, lane, lane);
                }
                step(r, *code, main, 1, 3);
            }};
}

Case many_nodes(const char* name, int count)
{
    auto code = std::make_shared<LazyModule>(k_step);
    return {.name = name, .memory = state_and_input(), .work = [code, count](Recorder& r) {
                CUstream main = native_stream(r.stream());
                const Native& native = Native::instance();
                CUfunction function = (*code)["step"];
                void* x = r["x"].pointer();
                for (int i = 0; i < count; ++i) {
                    void* y = (r["y"] + static_cast<std::uint64_t>(i % 4) * k_count * 4).pointer();
                    int k = i % 13;
                    native.launch(main, function, k_count / 256, 256, {&x, &y, &k});
                }
            }};
}

Case nothing()
{
    return {.name = "nothing",
            .memory = state_and_input(),
            .work = [](Recorder&) {},
            .expected = Outcome::refused,
            .refusal = "recorded nothing"};
}

} // namespace

void add_shape_cases(std::vector<std::pair<std::string, MakeCase>>& all)
{
    all.emplace_back("fork_over_four_streams", fork_over_four_streams);
    all.emplace_back("nested_child_graphs", nested_child_graphs);
    all.emplace_back("twenty_thousand_nodes", [] { return many_nodes("twenty_thousand_nodes", 20'000); });
    all.emplace_back("one_node", [] { return many_nodes("one_node", 1); });
    all.emplace_back("nothing", nothing);
}

} // namespace warmgraph::test
