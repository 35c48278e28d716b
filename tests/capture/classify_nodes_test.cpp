// Classifies the parts of a graph other than kernel parameters: copies, attributes, events, host functions, edges, the
// graph's own allocations.
#include "flat_captures.hpp"
#include "number_decl.hpp"
#include "warmgraph/backends/host_functions.hpp"

namespace warmgraph::test::classify_nodes_test {
namespace {

using namespace backends;

void nothing(void*) {}

class Nodes : public FlatCaptures {
protected:
    Nodes()
    {
        capture_all([](const Places&) { return (Packer{} << 1).bytes(); });
    }
    [[nodiscard]] static RawKernel& kernel(CapturedGraph& capture)
    {
        return std::get<RawKernel>(capture.graph.nodes[0].work);
    }
    [[nodiscard]] const cachefmt::KernelNode& stored_kernel()
    {
        m_result = classified();
        EXPECT_TRUE(m_result) << m_result.error().message;
        return std::get<cachefmt::KernelNode>(m_result->graph.nodes[0]);
    }
    template <class Node>
    [[nodiscard]] Node last()
    {
        auto result = classified();
        if (!result) {
            ADD_FAILURE() << result.error().message;
            return {};
        }
        m_result = result;
        return std::get<Node>(result->graph.nodes.back());
    }
    /// Makes a second capture of the same work, applies `change` to it, and expects that it is refused.
    template <class Change>
    void expect_seen(Change change, const std::string& as)
    {
        const Captures before = captures;
        change(*captures.again);
        expect_refused(HasSubstr(as));
        captures = before;
        change(*captures.moved);
        expect_refused(HasSubstr(as));
        captures = before;
    }
    Result<Classification> m_result = Classification{};
};

TEST_F(Nodes, ACopyKeepsItsBoxAndFollowsBothRegions)
{
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved}) {
        RawCopy copy{capture->regions[0].address + 16, capture->regions[1].address, 32, 4, 2, {64, 256}, {32, 128}};
        copy.source_space = MemorySpace::host;
        capture->graph.nodes.push_back({copy, {0}});
    }
    const auto copy = last<cachefmt::CopyNode>();
    EXPECT_EQ(copy.source, slot(0, 0, 16));
    EXPECT_EQ(copy.destination, slot(1, 0, 0));
    EXPECT_EQ(copy.rows, 4U);
    EXPECT_EQ(copy.slices, 2U);
    EXPECT_EQ(copy.source_pitch, (Pitch{64, 256}));
    EXPECT_EQ(copy.destination_pitch, (Pitch{32, 128}));
    EXPECT_EQ(copy.source_space, MemorySpace::host);
}

TEST_F(Nodes, ACopyThatReachesOutsideItsRegionIsRefused)
{
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
        capture->graph.nodes.push_back(
            {RawCopy{capture->regions[0].address + 2 * k_size, capture->regions[1].address, 32}, {}});
    expect_refused(AllOf(HasSubstr("copy (node 1)"), HasSubstr("its source"), HasSubstr("'x'")));
}

class AdjacentNodes : public Nodes {
protected:
    /// The region 'y' begins where 'x' ends, and both move by the same distance.
    AdjacentNodes()
    {
        m_first.y = m_first.x + k_size;
        m_moved.y = m_moved.x + k_size;
        capture_all([](const Places&) { return (Packer{} << 1).bytes(); });
    }
    void add_copy_to_the_boundary(std::uint64_t size)
    {
        for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
            capture->graph.nodes.push_back(
                {RawCopy{capture->scratch[0].second.address, capture->regions[1].address, size}, {}});
    }
};

TEST_F(AdjacentNodes, ACopyToTheStartOfARegionIsNotOnePastTheEndOfTheOneBefore)
{
    add_copy_to_the_boundary(32);
    EXPECT_EQ(last<cachefmt::CopyNode>().destination, slot(1, 0, 0));
    EXPECT_EQ(m_result->unproven, 0U);
    add_copy_to_the_boundary(0); // 0 bytes of x are left there, so the copy cannot mean the end of x
    EXPECT_EQ(last<cachefmt::CopyNode>().destination, slot(1, 0, 0));
}

TEST_F(AdjacentNodes, AFillAtTheStartOfARegionIsNotOnePastTheEndOfTheOneBefore)
{
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
        capture->graph.nodes.push_back({RawFill{capture->regions[1].address, {std::byte{7}}, 32}, {}});
    EXPECT_EQ(last<cachefmt::FillNode>().destination, slot(1, 0, 0));
    EXPECT_EQ(m_result->unproven, 0U);
}

TEST_F(Nodes, ACopyFromTheEndOfItsRegionIsRefusedUnlessItCopiesNothing)
{
    const auto copy_from_the_end = [this](std::uint64_t size) {
        for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
            capture->graph.nodes.push_back(
                {RawCopy{capture->regions[0].address + k_size, capture->regions[1].address, size}, {}});
    };
    copy_from_the_end(0);
    EXPECT_EQ(last<cachefmt::CopyNode>().source, slot(0, 0, k_size));
    copy_from_the_end(1);
    expect_refused(AllOf(HasSubstr("copy (node 2)"), HasSubstr("its source"), HasSubstr("outside its 4096")));
}

TEST_F(Nodes, AFillKeepsItsRowsAndAnUndeclaredDestinationIsRefused)
{
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
        capture->graph.nodes.push_back({RawFill{capture->regions[1].address, {std::byte{7}}, 32, 4, 64}, {}});
    const auto fill = last<cachefmt::FillNode>();
    EXPECT_EQ(fill.rows, 4U);
    EXPECT_EQ(fill.pitch, 64U);
    add_to_all({RawFill{Address::from_flat(0x7a00'0000'0000), {std::byte{7}}, 32}, {}});
    expect_refused(AllOf(HasSubstr("fill (node 2)"), HasSubstr("no declared region")));
}

TEST_F(Nodes, MemoryOperationsFollowTheirRegionsAndABarrierHasNone)
{
    using enum MemoryOperationKind;
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
        capture->graph.nodes.push_back(
            {RawMemoryOperations{{{wait_32, capture->regions[0].address + 8, 3, 1},
                                  {barrier, {}, 0, 1},
                                  {write_64, capture->regions[1].address + (k_size - 8), 1ULL << 62, 0}}},
             {}});
    const cachefmt::MemoryOperationsNode expected{
        {{wait_32, slot(0, 0, 8), 3, 1}, {barrier, {}, 0, 1}, {write_64, slot(1, 0, k_size - 8), 1ULL << 62, 0}}};
    EXPECT_EQ(last<cachefmt::MemoryOperationsNode>(), expected);
}

TEST_F(Nodes, AWordOfAMemoryOperationLiesWholeAndAlignedInItsRegion)
{
    using enum MemoryOperationKind;
    const auto at = [&](std::uint64_t offset, MemoryOperationKind kind) {
        for (auto* capture : {&captures.first, &*captures.again, &*captures.moved}) {
            capture->graph.nodes.resize(1);
            capture->graph.nodes.push_back(
                {RawMemoryOperations{{{kind, capture->regions[1].address + offset, 0, 0}}}, {}});
        }
    };
    for (const std::uint64_t offset : {k_size - 4, std::uint64_t{12}}) {
        at(offset, write_64);
        expect_refused(AllOf(HasSubstr("memory operations (node 1)"), HasSubstr("operation 0"), HasSubstr("'y'"),
                             HasSubstr("a word of 8 bytes")));
    }
    at(k_size, write_64);
    expect_refused(AllOf(HasSubstr("memory operations (node 1)"), HasSubstr("operation 0"), HasSubstr("outside")));
    at(k_size - 4, wait_32);
    EXPECT_TRUE(classified());
    at(0, wait_32);
    std::get<RawMemoryOperations>(captures.moved->graph.nodes[1].work).operations[0].address =
        captures.first.regions[1].address;
    expect_refused(AllOf(HasSubstr("memory operations (node 1)"), HasSubstr("'y'")));
}

TEST_F(Nodes, AValueOfAMemoryOperationIsTheSameInEveryCaptureAndNoAddress)
{
    using enum MemoryOperationKind;
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
        capture->graph.nodes.push_back(
            {RawMemoryOperations{{{barrier, {}, 0, 0}, {write_64, capture->regions[1].address, 5, 0}}}, {}});
    const auto write = [](CapturedGraph& c) -> RawMemoryOperation& {
        return std::get<RawMemoryOperations>(c.graph.nodes[1].work).operations[1];
    };
    expect_seen([&](CapturedGraph& c) { write(c).value = 6; }, "operation 1 of value 0x5 and then 0x6");
    expect_seen([&](CapturedGraph& c) { write(c).kind = wait_64; }, "another kind or other flags of operation 1");
    expect_seen([&](CapturedGraph& c) { write(c).flags = 1; }, "another kind or other flags of operation 1");
    expect_seen([](CapturedGraph& c) { std::get<RawMemoryOperations>(c.graph.nodes[1].work).operations.pop_back(); },
                "2 and then 1 operations");
    EXPECT_TRUE(classified());
    const std::uint64_t kept = captures.first.regions[0].address.flat() + 16;
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved}) write(*capture).value = kept;
    expect_refused(AllOf(HasSubstr("value of operation 1"), HasSubstr("'x'")));
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved})
        write(*capture).value = 0x7777'0000'0000;
    captures.allocation_at = [](std::uint64_t) { return std::optional{at(0x7777'0000'0000)}; };
    expect_refused(AllOf(HasSubstr("value of operation 1"), HasSubstr("0x777700000000")));
}

TEST_F(Nodes, AMemoryOperationMustNotFollowAScalar)
{
    using enum MemoryOperationKind;
    interface.scalars.push_back(test::number("n", DType::i32, std::pair{0.0, 100.0}));
    capture_all([](const Places&) { return (Packer{} << 1).bytes(); });
    const auto add = [](CapturedGraph& c) {
        c.graph.nodes.push_back({RawMemoryOperations{{{write_32, c.regions[1].address, 5, 0}}}, {}});
    };
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved}) add(*capture);
    for (ScalarProbe& probe : captures.probes) add(probe.capture);
    captures.scalars = {5};
    EXPECT_TRUE(classified());
    auto& probed = std::get<RawMemoryOperations>(captures.probes[1].capture.graph.nodes[1].work).operations[0];
    probed.value = 50;
    expect_refused(AllOf(HasSubstr("depends on the scalar 'n'"), HasSubstr("value 0x5 and then 0x32")));
    probed.value = 5;
    probed.address = probed.address + 4;
    expect_refused(AllOf(HasSubstr("memory operations (node 1)"), HasSubstr("depends on the scalar 'n'")));
}

TEST_F(Nodes, TheWindowOfAnAccessPolicyFollowsItsRegionAndOtherAttributesStay)
{
    for (auto* capture : {&captures.first, &*captures.again, &*captures.moved}) {
        const std::uint64_t base = capture->regions[1].address.flat();
        kernel(*capture).attributes = {{1, (Packer{} << base << std::uint64_t{512} << 1.0F << 2 << 1).bytes()},
                                       {4, (Packer{} << 2 << 1 << 1).bytes()}};
        kernel(*capture).function_attributes = {{8, 65536}};
        kernel(*capture).shared_bytes = 1000;
    }
    const auto& node = stored_kernel();
    ASSERT_EQ(node.attributes.size(), 2U);
    EXPECT_EQ(node.attributes[0].id, 1U);
    EXPECT_THAT(node.attributes[0].slots, ElementsAre(slot(1, 0, 0)));
    EXPECT_TRUE(node.attributes[1].slots.empty());
    EXPECT_EQ(node.attributes[1].value, kernel(captures.first).attributes[1].value);
    EXPECT_EQ(node.function_attributes, kernel(captures.first).function_attributes);
    EXPECT_EQ(node.shared_bytes, 1000U);
    kernel(*captures.moved).attributes[0].value[8] = std::byte{9};
    expect_refused(AllOf(HasSubstr("attribute 1 byte 8"), HasSubstr("kernel k")));
}

TEST_F(Nodes, DeclaredEventsBecomeNamesAndOthersAreRefused)
{
    captures.handles.events = {{"unused", 11}, {"ready", 12}};
    add_to_all({RawEventWait{12}, {}});
    add_to_all({RawEventRecord{12}, {1}});
    EXPECT_EQ(last<cachefmt::EventRecordNode>().event, 0U);
    EXPECT_EQ(m_result->graph.events, std::vector<std::string>{"ready"});
    add_to_all({RawEventRecord{13}, {2}});
    expect_refused(AllOf(HasSubstr("event record (node 3)"), HasSubstr("declare it by name")));
}

TEST_F(Nodes, SemaphoresAreStoredByNameWithTheirValuesAndUndeclaredOnesAreRefused)
{
    using enum SemaphoreAction;
    captures.handles.semaphores = {{"unused", 11}, {"ready", 12}, {"shown", 13}};
    add_to_all({RawSemaphores{wait, {{13, 7, 2}, {12, 8, 0}}}, {}});
    add_to_all({RawSemaphores{signal, {{12, 9, 1}}}, {1}});
    EXPECT_EQ(last<cachefmt::SemaphoresNode>(), (cachefmt::SemaphoresNode{signal, {{1, 9, {}, 1}}}));
    EXPECT_EQ(std::get<cachefmt::SemaphoresNode>(m_result->graph.nodes[1]),
              (cachefmt::SemaphoresNode{wait, {{0, 7, {}, 2}, {1, 8, {}, 0}}}));
    EXPECT_EQ(m_result->graph.semaphores, (std::vector<std::string>{"shown", "ready"}));

    const auto use = [](CapturedGraph& c) -> RawSemaphore& {
        return std::get<RawSemaphores>(c.graph.nodes[2].work).uses[0];
    };
    expect_seen([&](CapturedGraph& c) { use(c).semaphore = 13; }, "semaphore signal (node 2) with another semaphore 0");
    expect_seen([&](CapturedGraph& c) { use(c).flags = 0; }, "another semaphore 0, or other flags of it");
    expect_seen([&](CapturedGraph& c) { std::get<RawSemaphores>(c.graph.nodes[2].work).action = wait; },
                "as another action");
    expect_seen([](CapturedGraph& c) { std::get<RawSemaphores>(c.graph.nodes[1].work).uses.pop_back(); },
                "with 2 and then 1 semaphores");
    const Captures before = captures;
    use(*captures.again).value = 10; // the callable itself counts this value
    expect_refused(
        AllOf(HasSubstr("its second run enqueued something else"), HasSubstr("semaphore 0 of value 9 and then 10")));
    captures = before;
    use(*captures.moved).value = 10;
    expect_refused(AllOf(HasSubstr("semaphore signal (node 2)"), HasSubstr("the value 9, but 10 in another capture")));
    captures = before;
    captures.handles.semaphores.push_back({"again", 12});
    expect_refused(AllOf(HasSubstr("declared as 'ready' and as 'again'"), HasSubstr("declare it once")));
    captures = before;
    captures.handles.semaphores.pop_back();
    expect_refused(AllOf(HasSubstr("semaphore wait (node 1)"), HasSubstr("0xd"), HasSubstr("Spec::semaphores")));
}

class SemaphoreValues : public Nodes {
protected:
    /// Captures a signal. `make` computes the value of the signal from the scalar's value.
    template <class Make>
    void capture_signals(DType type, Make make)
    {
        interface.scalars = {test::number("n", type, std::pair{0.0, 100.0})};
        capture_all([](const Places&) { return (Packer{} << 1).bytes(); });
        captures.scalars = {5};
        captures.handles.semaphores = {{"shown", 12}};
        const auto add = [&](CapturedGraph& c, std::uint64_t n) {
            c.graph.nodes.push_back({RawSemaphores{SemaphoreAction::signal, {{12, make(n), 0}}}, {}});
        };
        for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved}) add(*capture, 5);
        for (ScalarProbe& probe : captures.probes) add(probe.capture, probe.bits);
    }
    [[nodiscard]] cachefmt::SemaphoreUse use() { return last<cachefmt::SemaphoresNode>().uses.at(0); }
};

TEST_F(SemaphoreValues, FollowAScalarPlusAConstant)
{
    using cachefmt::Slot, cachefmt::SlotKind, cachefmt::SemaphoreUse;
    capture_signals(DType::u64, [](std::uint64_t n) { return n + (1ULL << 40); });
    EXPECT_EQ(use(), (SemaphoreUse{0, 0, Slot{SlotKind::scalar, 0, 0, 8, 1LL << 40}, 0}));
    capture_signals(DType::i32, [](std::uint64_t n) { return (3ULL << 32) + n + 1; });
    EXPECT_EQ(use(), (SemaphoreUse{0, 3ULL << 32, Slot{SlotKind::scalar, 0, 0, 4, 1}, 0}));
    capture_signals(DType::i32, [](std::uint64_t) -> std::uint64_t { return 6; });
    EXPECT_EQ(use(), (SemaphoreUse{0, 6, {}, 0}));
}

TEST_F(SemaphoreValues, MadeOfAScalarInAnyOtherWayAreRefused)
{
    const auto refused = [this](const std::string& why) {
        expect_refused(
            AllOf(HasSubstr("semaphore signal (node 1)"), HasSubstr("semaphore 0"), HasSubstr("'n'"), HasSubstr(why)));
    };
    capture_signals(DType::u64, [](std::uint64_t n) { return 2 * n; });
    refused("pass the scalar, or the scalar plus a constant");
    capture_signals(DType::u64, [](std::uint64_t n) { return n % 64; });
    refused("pass the scalar, or the scalar plus a constant");
    capture_signals(DType::u32, [](std::uint64_t n) { return n << 32U; });
    refused("pass an integer scalar");
    capture_signals(DType::u32, [](std::uint64_t n) { return 0xFFFF'FFF0 + n; }); // its upper half changes, too
    refused("pass the scalar, or the scalar plus a constant");
    capture_signals(DType::f32, [](std::uint64_t n) { return n; });
    refused("pass an integer scalar");
}

TEST_F(Nodes, HostFunctionsAreStoredByNameAndUnregisteredOnesAreRefused)
{
    int data = 0, other = 0;
    ASSERT_TRUE(register_host_function("classify_nodes_test.nothing", {nothing, &data}));
    add_to_all({RawHost{nothing, &data}, {}});
    EXPECT_EQ(last<cachefmt::HostNode>().function, "classify_nodes_test.nothing");
    add_to_all({RawHost{nothing, &other}, {}});
    expect_refused(AllOf(HasSubstr("host function (node 2)"), HasSubstr("register_host_function")));
}

TEST_F(Nodes, EdgeDataIsKeptAndPlainEdgesMayBeSpelledOut)
{
    add_to_all({RawEmpty{}, {0}, {{1, 0, 1}}});
    add_to_all({RawEmpty{}, {0, 1}});
    captures.again->graph.nodes[2].edges.clear();
    captures.moved->graph.nodes[2].edges = {{}, {}};
    const auto result = take(classified());
    EXPECT_THAT(result.graph.edges,
                ElementsAre(cachefmt::Edge{0, 1, {1, 0, 1}}, cachefmt::Edge{0, 2, {}}, cachefmt::Edge{1, 2, {}}));
}

TEST_F(Nodes, KernelsAreNamedAsPeopleReadThem)
{
    for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved})
        kernel(*capture).kernel = "_ZN2at6native6kernelILi128ELi2ELi1EEEvPf";
    const std::string name = "kernel at::native::kernel<128, 2, ...> (node 0)";
    expect_seen([](CapturedGraph& c) { kernel(c).shared_bytes = 1; },
                name + " with 0 and then 1 bytes of shared memory");
    expect_seen([](CapturedGraph& c) { kernel(c).kernel = "_ZN2at6native6kernelILi128ELi2ELi2EEEvPf"; },
                name + " and then one with other template arguments");
}

/// The driver chooses between forms of a copy or a fill by the alignment of the memory.
TEST_F(Nodes, TheSameBytesSpelledInAnotherWayAreNoDifference)
{
    const auto work = [](CapturedGraph& capture, bool in_rows) -> std::vector<RawWork> {
        const Address from = capture.regions[0].address, to = capture.regions[1].address;
        if (!in_rows) return {RawCopy{from, to, 96}, RawFill{to, Bytes(1, std::byte{7}), 96}};
        return {RawCopy{from, to, 32, 3, 1, {32, 0}, {32, 0}}, RawFill{to, Bytes(4, std::byte{7}), 32, 3, 32}};
    };
    for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved})
        for (RawWork& one : work(*capture, capture == &*captures.moved))
            capture->graph.nodes.push_back({std::move(one), {}});
    const auto result = take(classified());
    const auto& copy = std::get<cachefmt::CopyNode>(result.graph.nodes[1]);
    EXPECT_EQ(copy.size, 96U);
    EXPECT_EQ(copy.rows, 1U) << "as the first capture has it";
}

TEST_F(Nodes, WhateverElseDiffersBetweenCapturesIsRefused)
{
    add_to_all({RawCopy{captures.first.regions[0].address, captures.first.regions[1].address, 32}, {0}});
    captures.moved->graph.nodes[1].work =
        RawCopy{captures.moved->regions[0].address, captures.moved->regions[1].address, 32};
    add_to_all({RawHost{nothing, nullptr}, {}});
    const auto copy = [](CapturedGraph& capture) -> RawCopy& { return std::get<RawCopy>(capture.graph.nodes[1].work); };
    expect_seen([](CapturedGraph& c) { kernel(c).grid[0] = 2; }, "grid");
    expect_seen([](CapturedGraph& c) { kernel(c).shared_bytes = 1; }, "shared memory");
    expect_seen([](CapturedGraph& c) { kernel(c).packed = true; }, "form of parameters");
    expect_seen([](CapturedGraph& c) { kernel(c).kernel = "l"; }, "kernel k (node 0) and then kernel l (node 0)");
    expect_seen([](CapturedGraph& c) { kernel(c).params[0].value.resize(8); }, "size of parameter 0");
    expect_seen([](CapturedGraph& c) { kernel(c).attributes = {{2, {std::byte{1}}}}; }, "launch attributes");
    expect_seen([](CapturedGraph& c) { kernel(c).function_attributes = {{8, 1}}; }, "function attributes");
    expect_seen([&](CapturedGraph& c) { copy(c).rows = 2; }, "another size");
    expect_seen([&](CapturedGraph& c) { copy(c).source_pitch.row = 2; }, "pitch");
    expect_seen([&](CapturedGraph& c) { copy(c).destination_space = MemorySpace::host; }, "kinds of memory");
    expect_seen([](CapturedGraph& c) { c.graph.nodes[1].edges = {{1, 0, 1}}; }, "edge data");
    expect_seen([](CapturedGraph& c) { c.graph.nodes[1].dependencies.clear(); }, "dependencies");
    expect_seen([](CapturedGraph& c) { c.graph.nodes[2].work = RawHost{nothing, &c}; },
                "another function or other data");
    expect_seen([](CapturedGraph& c) { c.graph.nodes[2].work = RawEmpty{}; }, "and then empty (node 2)");
    expect_seen([](CapturedGraph& c) { c.graph.nodes.pop_back(); }, "3 nodes and then 2");
    expect_seen([](CapturedGraph& c) { c.graph.allocations.push_back({at(0x1000)}); }, "memory allocations");
}

class Allocations : public FlatCaptures {
protected:
    /// Captures a graph that allocates memory itself. The memory has another address in each capture.
    void capture_with_allocation(std::uint64_t first, std::uint64_t again, std::uint64_t moved)
    {
        const auto make = [](CapturedGraph& capture, std::uint64_t place) {
            capture.graph.allocations = {{at(place)}};
            std::get<RawKernel>(capture.graph.nodes[0].work).params[0].value = (Packer{} << place + 64).bytes();
            capture.graph.nodes.push_back({RawFill{Address::from_flat(place), {std::byte{0}}, 16}, {0}});
            capture.graph.nodes.push_back(
                {RawMemoryOperations{{{MemoryOperationKind::write_32, Address::from_flat(place + 32), 1, 0}}}, {1}});
        };
        capture_all([](const Places&) { return (Packer{} << 0L).bytes(); });
        make(captures.first, first);
        make(*captures.again, again);
        make(*captures.moved, moved);
    }
};

TEST_F(Allocations, OfTheGraphBecomeArenaWhereverEachCaptureHadThem)
{
    capture_with_allocation(0x7f00'0300'0000, 0x7f00'0500'0000, 0x7e00'0900'0000);
    const auto result = take(classified());
    ASSERT_EQ(result.graph.regions.size(), 4U);
    EXPECT_EQ(result.graph.regions[3].name, "graph allocation 0");
    EXPECT_EQ(result.graph.regions[3].kind, cachefmt::RegionKind::arena);
    EXPECT_EQ(result.graph.regions[3].size, k_size);
    EXPECT_EQ(result.graph.regions[3].alignment, 512U);
    EXPECT_THAT(std::get<cachefmt::KernelNode>(result.graph.nodes[0]).params[0].slots, ElementsAre(slot(3, 0, 64)));
    EXPECT_EQ(std::get<cachefmt::FillNode>(result.graph.nodes[1]).destination, slot(3, 0, 0));
    EXPECT_EQ(std::get<cachefmt::MemoryOperationsNode>(result.graph.nodes[2]).operations[0].address, slot(3, 0, 32));
}

TEST_F(Allocations, AtTheSamePlaceInEveryCaptureProveNothing)
{
    capture_with_allocation(0x7f00'0300'0000, 0x7f00'0300'0000, 0x7f00'0300'0000);
    expect_refused(AllOf(HasSubstr("graph allocation 0"), HasSubstr("same address in both captures")));
    captures.proof = Proof::allow_unproven;
    EXPECT_EQ(classified()->unproven, 3U);
}

} // namespace
} // namespace warmgraph::test::classify_nodes_test
