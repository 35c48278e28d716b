// Captures, instantiates, replays and updates graphs.
#include "conformance.hpp"
#include "warmgraph/backends/one_by_one.hpp"

namespace warmgraph::backends::test::conformance_graph_test {
namespace {

using Dependencies = std::vector<std::uint32_t>;

class ConformanceGraph : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, ConformanceGraph, testing::ValuesIn(subjects()), name_of);

TEST_P(ConformanceGraph, RecordsWithoutRunning)
{
    const Address x = allocate(all(1)), y = allocate(all(2));
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(stream->is_capturing());
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
        EXPECT_TRUE(succeeded(stream->copy({x, y, 64})));
        EXPECT_TRUE(succeeded(stream->fill({x, Bytes(4), 64})));
    });
    EXPECT_FALSE(stream->is_capturing());
    finish();
    EXPECT_EQ(read(x), all(1));
    EXPECT_EQ(read(y), all(2));
    ASSERT_EQ(graph.nodes.size(), 3U);
    EXPECT_EQ(std::get<RawKernel>(graph.nodes[0].work), as_captured(add_scalar(x, 1)));
    EXPECT_EQ(std::get<RawCopy>(graph.nodes[1].work), (RawCopy{x, y, 64}));
    EXPECT_EQ(std::get<RawFill>(graph.nodes[2].work), (RawFill{x, Bytes(4), 64}));
    EXPECT_EQ(graph.nodes[0].dependencies, Dependencies{});
    EXPECT_EQ(graph.nodes[1].dependencies, Dependencies{0});
    EXPECT_EQ(graph.nodes[2].dependencies, Dependencies{1});
}

TEST_P(ConformanceGraph, RecordsOnShadowsThatNothingElseMayUse)
{
    // More bytes than any device has. With flat addresses, shadows are mapped, and their page tables take time and
    // memory; so the size is smaller there.
    const std::uint64_t size = 1ULL << (device->limits().flat_addresses ? 38 : 40);
    ASSERT_GT(size, device->limits().memory);
    const MemoryRef shadow = take(device->reserve_shadow(size));
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(shadow.address + size / 2, 1))));
        EXPECT_TRUE(succeeded(stream->fill({shadow.address, Bytes(4), size / 2})));
    });
    EXPECT_EQ(std::get<RawKernel>(graph.nodes[0].work), as_captured(add_scalar(shadow.address + size / 2, 1)));
    EXPECT_EQ(std::get<RawFill>(graph.nodes[1].work).destination, shadow.address);
    EXPECT_FALSE(stream->launch(add_scalar(shadow.address, 1)).has_value());
    std::byte byte{};
    EXPECT_TRUE(
        failed_with(device->upload(shadow.address, {&byte, 1}), ErrorCode::invalid_argument, "reserved for captures"));
    device->release(shadow);
}

TEST_P(ConformanceGraph, UploadsAheadAndTakesChangesAfterwards)
{
    const Address x = allocate(all(1)), other = allocate(all(1));
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(scale(x, 3))));
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 4))));
    });
    const auto exec = take(device->instantiate(graph));
    ASSERT_TRUE(succeeded(exec->upload()));
    EXPECT_EQ(read(x), all(1)) << "nothing ran";
    ASSERT_TRUE(succeeded(exec->launch(*stream)));
    ASSERT_TRUE(succeeded(exec->upload())) << "with a launch in flight";
    for (std::uint32_t node = 0; node < 2; ++node)
        ASSERT_TRUE(succeeded(exec->update(node, node == 0 ? scale(other, 5) : add_scalar(other, 6))));
    ASSERT_TRUE(succeeded(exec->launch(*stream)));
    finish();
    EXPECT_EQ(read(x), all(7));
    EXPECT_EQ(read(other), all(11));
}

TEST_P(ConformanceGraph, RunsLikeTheEagerWork)
{
    const Address eager = allocate(all(1)), replayed = allocate(all(1)), scratch = allocate(all(0));
    const auto work = [&](const Address& x) {
        EXPECT_TRUE(succeeded(stream->launch(scale(x, 3))));
        EXPECT_TRUE(succeeded(stream->copy({x, scratch, k_count * 4})));
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 4))));
        EXPECT_TRUE(succeeded(stream->launch(add(x, x, scratch))));
        EXPECT_TRUE(succeeded(stream->fill({x, Bytes(8, std::byte{1}), 64})));
    };
    work(eager);
    finish();
    const RawGraph graph = capture([&] { work(replayed); });
    replay(graph);
    EXPECT_EQ(read(eager)[100], 10);
    EXPECT_EQ(read(replayed), read(eager));
}

TEST_P(ConformanceGraph, ItsNodesOneByOneDoWhatTheGraphDoes)
{
    const auto forked = take(device->create_stream());
    const Address x = allocate(all(1)), y = allocate(all(0)), z = allocate(all(0));
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 4)))); // x = 5
        EXPECT_TRUE(succeeded(forked->wait(take(stream->record_event()))));
        EXPECT_TRUE(succeeded(forked->copy({x, y, k_count * 4}))); // y = 5
        EXPECT_TRUE(succeeded(forked->launch(scale(y, 7))));       // y = 35
        EXPECT_TRUE(succeeded(stream->launch(add(z, x, x))));      // z = 10
        EXPECT_TRUE(succeeded(stream->wait(take(forked->record_event()))));
        EXPECT_TRUE(succeeded(stream->launch(add(z, z, y)))); // z = 45
        EXPECT_TRUE(succeeded(stream->fill({y, Bytes(4), 64})));
    });
    ASSERT_TRUE(can_launch_one_by_one(graph));
    ASSERT_TRUE(succeeded(launch_one_by_one(*stream, graph)));
    finish();
    std::vector<std::int32_t> filled(k_count, 35);
    std::fill_n(filled.begin(), 16, 0);
    EXPECT_EQ(read(x), all(5));
    EXPECT_EQ(read(y), filled);
    EXPECT_EQ(read(z), all(45));
    ASSERT_TRUE(succeeded(take(device->instantiate(graph))->launch(*stream)));
    finish();
    EXPECT_EQ(read(x), all(9));
    EXPECT_EQ(read(z), all(81));

    const Address unused = allocate(all(0));
    (void)capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(unused, 1))));
        EXPECT_TRUE(failed_with(launch_one_by_one(*stream, graph), ErrorCode::not_recordable, "captures"));
    });
}

TEST_P(ConformanceGraph, OfNodesOneByOneNothingIsEnqueuedWhereOneCannotBe)
{
    const Address x = allocate(all(1));
    const auto with = [&](const RawWork& last) {
        RawGraph graph;
        graph.nodes.push_back({add_scalar(x, 4), {}});
        graph.nodes.push_back({RawEmpty{}, {0}});
        graph.nodes.push_back({last, {1}});
        return graph;
    };
    RawKernel wrong = add_scalar(x, 1);
    wrong.params.pop_back();
    EXPECT_TRUE(failed_with(launch_one_by_one(*stream, with(wrong)), ErrorCode::invalid_argument, "node 2 of 3"));
    RawKernel large = add_scalar(x, 1);
    large.block = {1U << 20, 1, 1};
    EXPECT_TRUE(failed_with(launch_one_by_one(*stream, with(large)), ErrorCode::invalid_argument, "node 2 of 3"));
    EXPECT_TRUE(failed_with(launch_one_by_one(*stream, with(RawFill{x, Bytes(4), k_count * 4 + 4})),
                            ErrorCode::invalid_argument, "node 2 of 3"));
    RawKernel cooperative = add_scalar(x, 1);
    cooperative.attributes.push_back({launch_attribute::k_cooperative, Bytes(4, std::byte{1})});
    RawGraph programmatic = with(add_scalar(x, 1));
    programmatic.nodes[2].edges = {{1, 0, 1}};
    for (const RawGraph& graph : {with(cooperative), with(RawEventRecord{7}), with(RawHost{}), programmatic}) {
        EXPECT_FALSE(can_launch_one_by_one(graph));
        EXPECT_TRUE(failed_with(launch_one_by_one(*stream, graph), ErrorCode::unsupported, "instantiated"));
    }
    finish();
    EXPECT_EQ(read(x), all(1));
    EXPECT_TRUE(can_launch_one_by_one(with(RawEmpty{})));
    ASSERT_TRUE(succeeded(launch_one_by_one(*stream, with(RawEmpty{}))));
    finish();
    EXPECT_EQ(read(x), all(5));
}

TEST_P(ConformanceGraph, GivesEachNodeArgumentsOfItsOwn)
{
    // PoCL 3.1's command buffer reads arguments from the kernel object when it is enqueued: if the launches shared one
    // object, all of them would get the arguments of the last launch.
    const Address x = allocate(all(0));
    const RawGraph graph = capture([&] {
        for (std::int32_t i = 0; i < 200; ++i) EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, i))));
    });
    const auto exec = take(device->instantiate(graph));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(succeeded(exec->launch(*stream)));
    finish();
    EXPECT_EQ(read(x), all(3 * 199 * 100));
}

TEST_P(ConformanceGraph, TurnsForkAndJoinIntoEdges)
{
    const auto forked = take(device->create_stream());
    const Address a = allocate(all(1)), b = allocate(all(1)), out = allocate(all(0));
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(a, 4)))); // 0: a = 5
        EXPECT_TRUE(succeeded(forked->wait(take(stream->record_event()))));
        EXPECT_TRUE(forked->is_capturing());
        EXPECT_TRUE(succeeded(forked->copy({a, b, k_count * 4}))); // 1: b = 5
        EXPECT_TRUE(succeeded(forked->launch(scale(b, 7))));       // 2: b = 35
        EXPECT_TRUE(succeeded(stream->launch(add(out, a, a))));    // node 3: out = 10
        EXPECT_TRUE(succeeded(stream->wait(take(forked->record_event()))));
        EXPECT_TRUE(succeeded(stream->launch(add(out, out, b)))); // node 4: out = 45
    });
    EXPECT_FALSE(forked->is_capturing());
    ASSERT_EQ(graph.nodes.size(), 5U);
    EXPECT_EQ(graph.nodes[1].dependencies, Dependencies{0});
    EXPECT_EQ(graph.nodes[2].dependencies, Dependencies{1});
    EXPECT_EQ(graph.nodes[3].dependencies, Dependencies{0});
    EXPECT_EQ(graph.nodes[4].dependencies, (Dependencies{2, 3}));
    const auto exec = take(device->instantiate(graph));
    for (std::int32_t run = 1; run <= 20; ++run) {
        ASSERT_TRUE(succeeded(exec->launch(*stream)));
        ASSERT_TRUE(succeeded(stream->launch(add_scalar(out, run)))); // must run after the whole graph
        finish();
        const std::int32_t a_now = 1 + 4 * run;
        ASSERT_EQ(read(out), all(2 * a_now + 7 * a_now + run));
    }
}

TEST_P(ConformanceGraph, RunsMoreBranchesThanItHasQueues)
{
    constexpr std::size_t k_branches = 9;
    std::vector<std::unique_ptr<Stream>> forks;
    std::vector<Address> parts;
    const Address x = allocate(all(1));
    for (std::size_t i = 0; i < k_branches; ++i) {
        forks.push_back(take(device->create_stream()));
        parts.push_back(allocate(all(0)));
    }
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
        const auto start = take(stream->record_event());
        for (std::size_t i = 0; i < k_branches; ++i) {
            EXPECT_TRUE(succeeded(forks[i]->wait(start)));
            EXPECT_TRUE(succeeded(forks[i]->copy({x, parts[i], k_count * 4})));
            EXPECT_TRUE(succeeded(forks[i]->launch(scale(parts[i], static_cast<std::int32_t>(i) + 1))));
        }
        for (const auto& fork : forks) EXPECT_TRUE(succeeded(stream->wait(take(fork->record_event()))));
        for (const Address& part : parts) EXPECT_TRUE(succeeded(stream->launch(add(x, x, part))));
    });
    const auto exec = take(device->instantiate(graph));
    std::int32_t expected = 1;
    for (int run = 0; run < 5; ++run) {
        ASSERT_TRUE(succeeded(exec->launch(*stream)));
        expected = (expected + 1) * 46; // 1 + (1 + ... + 9)
    }
    finish();
    EXPECT_EQ(read(x), all(expected));
}

TEST_P(ConformanceGraph, RunsBranchesThatStartAndEndOnTheirOwn)
{
    // The second branch is long, and has no edge to the first branch. It must still run after the stream's earlier work
    // and before the stream's later work.
    constexpr std::int32_t k_steps = 100;
    const auto forked = take(device->create_stream());
    const Address a = allocate(all(1)), b = allocate(all(1));
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(succeeded(forked->wait(take(stream->record_event()))));
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(a, 1))));
        for (std::int32_t i = 0; i < k_steps; ++i) EXPECT_TRUE(succeeded(forked->launch(add_scalar(b, 1))));
        EXPECT_TRUE(succeeded(stream->wait(take(forked->record_event()))));
    });
    EXPECT_EQ(graph.nodes[1].dependencies, Dependencies{});
    const auto exec = take(device->instantiate(graph));
    std::uint32_t expected = 1;
    for (int run = 0; run < 10; ++run) {
        for (std::int32_t i = 0; i < k_steps; ++i) ASSERT_TRUE(succeeded(stream->launch(add_scalar(b, i))));
        ASSERT_TRUE(succeeded(stream->launch(scale(b, 3))));
        ASSERT_TRUE(succeeded(exec->launch(*stream)));
        ASSERT_TRUE(succeeded(stream->launch(scale(b, 5))));
        expected = ((expected + k_steps * (k_steps - 1) / 2) * 3 + k_steps) * 5;
    }
    finish();
    EXPECT_EQ(read(a), all(11));
    EXPECT_EQ(read(b), all(static_cast<std::int32_t>(expected)));
}

TEST_P(ConformanceGraph, RefusesAForkThatWasNotJoined)
{
    const auto forked = take(device->create_stream());
    const Address x = allocate(all(1));
    ASSERT_TRUE(succeeded(stream->begin_capture()));
    ASSERT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
    ASSERT_TRUE(succeeded(forked->wait(take(stream->record_event()))));
    ASSERT_TRUE(succeeded(forked->launch(add_scalar(x, 1))));
    EXPECT_TRUE(failed_with(stream->end_capture(), ErrorCode::not_recordable, "not joined"));
    EXPECT_FALSE(stream->is_capturing());
    EXPECT_FALSE(forked->is_capturing());
    ASSERT_TRUE(succeeded(forked->launch(add_scalar(x, 1))));
    ASSERT_TRUE(succeeded(forked->synchronize()));
    EXPECT_EQ(read(x), all(2));
}

TEST_P(ConformanceGraph, RefusesWhatNoGraphCanHold)
{
    const auto refused = [&](std::string_view text, auto body) {
        ASSERT_TRUE(succeeded(stream->begin_capture()));
        body();
        EXPECT_TRUE(failed_with(stream->end_capture(), ErrorCode::not_recordable, std::string(text)));
        EXPECT_FALSE(stream->is_capturing());
    };
    const auto before = take(stream->record_event());
    refused("synchronize", [&] { EXPECT_TRUE(failed_with(stream->synchronize(), ErrorCode::not_recordable)); });
    refused("begin_capture", [&] { EXPECT_TRUE(failed_with(stream->begin_capture(), ErrorCode::not_recordable)); });
    refused("outside the capture", [&] { EXPECT_TRUE(failed_with(stream->wait(before), ErrorCode::not_recordable)); });
    EXPECT_TRUE(failed_with(stream->end_capture(), ErrorCode::not_recordable, "without begin_capture"));

    std::shared_ptr<Event> inside;
    static_cast<void>(capture([&] { inside = take(stream->record_event()); }));
    EXPECT_TRUE(failed_with(stream->wait(inside), ErrorCode::invalid_argument, "has ended"));
}

TEST_P(ConformanceGraph, RemembersAFailureUntilTheCaptureEnds)
{
    ASSERT_TRUE(succeeded(stream->begin_capture()));
    EXPECT_FALSE(stream->copy({allocate(), allocate(), 0}).has_value());
    EXPECT_TRUE(succeeded(stream->launch(add_scalar(allocate(), 1))));
    EXPECT_TRUE(failed_with(stream->end_capture(), ErrorCode::invalid_argument, "0 bytes"));
}

TEST_P(ConformanceGraph, UpdatesOnlyLaterLaunches)
{
    const Address x = allocate(all(0)), y = allocate(all(0)), from = allocate(all(1000));
    const RawGraph graph = capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
        EXPECT_TRUE(succeeded(stream->copy({from, y, 4})));
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 10))));
    });
    const auto exec = take(device->instantiate(graph));
    std::int32_t in_x = 0;
    for (std::int32_t run = 0; run < 50; ++run) { // no wait between launches: earlier launches are still running
        ASSERT_TRUE(succeeded(exec->update(0, add_scalar(x, run))));
        ASSERT_TRUE(succeeded(exec->launch(*stream)));
        in_x += run + 10;
        if (run % 3 != 0) continue;
        ASSERT_TRUE(succeeded(exec->launch(*stream))); // launches the graph once more without a change
        in_x += run + 10;
    }
    ASSERT_TRUE(succeeded(exec->update(2, add_scalar(y, 7))));
    ASSERT_TRUE(succeeded(exec->update(1, RawCopy{from, y + 4, 8})));
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(succeeded(exec->launch(*stream)));
        in_x += 49;
    }
    finish();
    EXPECT_EQ(read(x), all(in_x));
    const auto values = read(y);
    EXPECT_EQ(values[0], 1014);
    EXPECT_EQ(values[1], 1007);
    EXPECT_EQ(values[2], 1007);
    EXPECT_EQ(values[3], 14);
}

TEST_P(ConformanceGraph, RefusesUpdatesThatMakeAnotherGraph)
{
    const Address x = allocate(all(0));
    const auto exec = take(device->instantiate(capture([&] {
        EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 1))));
        EXPECT_TRUE(succeeded(stream->fill({x, Bytes(4), 4})));
    })));
    RawKernel larger = add_scalar(x, 1);
    larger.grid = {1, 1, 1};
    EXPECT_TRUE(failed_with(exec->update(0, larger), ErrorCode::invalid_argument, "dimensions"));
    EXPECT_TRUE(failed_with(exec->update(0, scale(x, 1)), ErrorCode::invalid_argument, "kernel"));
    RawKernel fewer = add_scalar(x, 1);
    fewer.params.pop_back();
    EXPECT_TRUE(failed_with(exec->update(0, fewer), ErrorCode::invalid_argument, "parameters"));
    RawKernel wider = add_scalar(x, 1);
    wider.params[1].value.resize(8);
    EXPECT_TRUE(failed_with(exec->update(0, wider), ErrorCode::invalid_argument)); // some errors name the parameter
    EXPECT_TRUE(failed_with(exec->update(0, RawFill{x, Bytes(4), 4}), ErrorCode::invalid_argument, "kind"));
    EXPECT_TRUE(failed_with(exec->update(2, RawFill{x, Bytes(4), 4}), ErrorCode::invalid_argument, "2"));
    EXPECT_TRUE(failed_with(exec->update(1, RawFill{x, Bytes(3), 3}), ErrorCode::invalid_argument));
    if (needs_alignment()) {
        EXPECT_TRUE(failed_with(exec->update(0, add_scalar(x + 4, 1)), ErrorCode::invalid_argument, "multiple of"));
    }
    ASSERT_TRUE(succeeded(exec->update(0, add_scalar(x, 2))));
    ASSERT_TRUE(succeeded(exec->launch(*stream)));
    finish();
    EXPECT_EQ(read(x)[1], 2);
    EXPECT_EQ(read(x)[0], 0);
}

TEST_P(ConformanceGraph, LaunchesAnEmptyGraph)
{
    const RawGraph graph = capture([] {});
    EXPECT_TRUE(graph.nodes.empty());
    replay(graph);
    RawGraph only_empty_nodes;
    only_empty_nodes.nodes = {{RawEmpty{}, {}}, {RawEmpty{}, {}}, {RawEmpty{}, {0, 1}}};
    replay(only_empty_nodes);
}

TEST_P(ConformanceGraph, ReplaysTwoThousandNodes)
{
    const Address x = allocate(all(0));
    RawKernel one = add_scalar(x, 1);
    one.grid = {1, 1, 1};
    const RawGraph graph = capture([&] {
        for (int i = 0; i < 2000; ++i) EXPECT_TRUE(succeeded(stream->launch(one)));
    });
    replay(graph);
    EXPECT_EQ(read(x)[0], 2000);
    EXPECT_EQ(read(x)[k_block], 0);
}

TEST_P(ConformanceGraph, HoldsMemoryOperationsWhereAddressesAreFlatAndElseRefusesThemByName)
{
    using enum MemoryOperationKind;
    const Address x = allocate(all(3)), y = allocate(all(4));
    const auto batch = [](const Address& at, std::uint64_t value) {
        return RawMemoryOperations{{{wait_32, at + 4, 3, 0}, {write_32, at, value, 0}, {write_64, at + 8, 1, 0}}};
    };
    const RawGraph graph{{{batch(x, 5), {}}}};
    const auto made = device->instantiate(graph);
    if (!device->limits().flat_addresses) {
        EXPECT_TRUE(failed_with(made, ErrorCode::unsupported, "memory operation"));
        return;
    }
    ASSERT_TRUE(succeeded(made));
    ASSERT_TRUE(succeeded((*made)->launch(*stream)));
    ASSERT_TRUE(succeeded((*made)->update(0, batch(y, 6))));
    ASSERT_TRUE(succeeded((*made)->launch(*stream)));
    finish();
    EXPECT_EQ(read(x, 5), (std::vector<std::int32_t>{5, 3, 1, 0, 3}));
    EXPECT_EQ(read(y, 5), (std::vector<std::int32_t>{6, 4, 1, 0, 4}));
    auto other = batch(y, 6);
    other.operations.pop_back();
    EXPECT_TRUE(failed_with((*made)->update(0, other), ErrorCode::invalid_argument, "number, kinds or flags"));
    EXPECT_TRUE(
        failed_with((*made)->update(0, batch(y + 2, 6)), ErrorCode::invalid_argument, "multiple of the word's size"));
    EXPECT_TRUE(failed_with(device->instantiate({{{RawMemoryOperations{}, {}}}}), ErrorCode::invalid_argument));
}

TEST_P(ConformanceGraph, RefusesSemaphoresThatAreNoneAndWhereThereAreNone)
{
    const RawGraph graph{{{RawSemaphores{SemaphoreAction::signal, {{0, 5, 0}}}, {}}}};
    const auto made = device->instantiate(graph);
    if (!device->limits().flat_addresses) {
        EXPECT_TRUE(failed_with(made, ErrorCode::unsupported, "no semaphore nodes"));
        return;
    }
    EXPECT_TRUE(failed_with(made, ErrorCode::invalid_argument, "node 0 of 1: semaphore 0 is null"));
    EXPECT_TRUE(failed_with(device->instantiate({{{RawSemaphores{}, {}}}}), ErrorCode::invalid_argument));
    EXPECT_TRUE(succeeded(device->instantiate(without_outside(graph))));
}

TEST_P(ConformanceGraph, RefusesGraphsThatCannotRun)
{
    const Address x = allocate(all(0));
    RawGraph backwards{{{RawFill{x, Bytes(4), 4}, {1}}, {RawFill{x, Bytes(4), 4}, {}}}};
    EXPECT_TRUE(failed_with(device->instantiate(backwards), ErrorCode::invalid_argument, "not an earlier node"));
    RawKernel unknown = add_scalar(x, 1);
    unknown.kernel = "subtract";
    EXPECT_TRUE(failed_with(device->instantiate({{{unknown, {}}}}), ErrorCode::invalid_argument, "node 0"));
    RawKernel misfit = add_scalar(needs_alignment() ? x + 4 : x, 1);
    if (!needs_alignment()) misfit.params[1].value.resize(8);
    EXPECT_TRUE(
        failed_with(device->instantiate({{{RawEmpty{}, {}}, {misfit, {0}}}}), ErrorCode::invalid_argument, "node 1"));
    const auto exec = take(device->instantiate({{{RawFill{x, Bytes(4), 4}, {}}}}));
    ASSERT_TRUE(succeeded(stream->begin_capture()));
    EXPECT_TRUE(failed_with(exec->launch(*stream), ErrorCode::not_recordable));
    static_cast<void>(stream->end_capture());
}

} // namespace
} // namespace warmgraph::backends::test::conformance_graph_test
