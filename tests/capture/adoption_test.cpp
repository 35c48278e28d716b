// Adopts foreign graphs: a second capture proves them, or, if the caller allows it, they are taken without a proof.
#include "adoption_fixture.hpp"
#include "number_decl.hpp"

namespace warmgraph::test::adoption_test {
namespace {

TEST_F(AdoptionTest, AnOutputThatHoldsTheRightResultsAlreadyProvesNothing)
{
    std::fill_n(frame.memory[1].address.pointer<std::int32_t>(), k_count, 7); // contents that the owner's warm-up left
    device->restores_nothing = true;
    EXPECT_TRUE(failed_with(adopted(first->capture, &second->capture), ErrorCode::verification_failed));
    EXPECT_EQ(read(frame.memory[1]), all(7));
}

TEST_F(AdoptionTest, WithTwoCapturesEveryWordIsProvenAndTheCallersMemoryIsAsItWas)
{
    auto recording = take(adopted(first->capture, &second->capture));
    expect_untouched();
    const auto& info = recording.entry.header.info;
    EXPECT_EQ(info.unproven, 0U);
    EXPECT_EQ(info.verification, "bitwise (3 runs)");
    const auto& regions = recording.entry.graph.regions;
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[2].name, "pool");
    EXPECT_EQ(regions[2].kind, RegionKind::arena);

    expect_replay(recording, 40, 42);
    EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 99)) << "the restored graph has its own";
}

/// PyTorch's pools often lie side by side: in both captures one pool ends where the next one starts.
TEST_F(AdoptionTest, ScratchSideBySideInBothCapturesIsOneRegion)
{
    for (RawCapture* captured : {first.get(), second.get()}) {
        auto& [name, memory] = captured->capture.scratch[0];
        const MemoryRef start{memory.address, 16},
            rest{memory.address + 16, memory.size - 16}; // kernels get addresses from here on
        captured->capture.scratch = {{"start", start}, {"pool", rest}};
    }
    auto recording = take(adopted(first->capture, &second->capture));
    const auto& regions = recording.entry.graph.regions;
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[2].name, "start");
    EXPECT_EQ(regions[2].size, pool.size);
    expect_replay(recording, 40, 42);
    expect_untouched();
}

TEST_F(AdoptionTest, WithOneCaptureItIsRefusedUnlessUnprovenAddressesAreAllowed)
{
    expect_refused(adopted(first->capture, nullptr), ErrorCode::not_recordable,
                   AllOf(HasSubstr("second capture"), HasSubstr("'pool'")));
    auto recording = take(adopted(first->capture, nullptr, Proof::allow_unproven));
    EXPECT_EQ(recording.entry.header.info.unproven, 4U);
    expect_untouched();
    expect_replay(recording, 1, 3);
}

TEST_F(AdoptionTest, ASecondCaptureOfOtherWorkIsRefused)
{
    std::get<backends::RawKernel>(second->graph.nodes[1].work).grid[0] = 2;
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 1)"), HasSubstr("grid")));
}

TEST_F(AdoptionTest, WorkThatWritesPastADeclaredRegionIsFoundOnTheCopies)
{
    // The original graph has room behind y, which the restored graph must not use.
    frame.tensors[1].sizes[0] = k_count - 8;
    EXPECT_TRUE(failed_with(adopted(first->capture, &second->capture), ErrorCode::verification_failed, "outside 'y'"));
}

TEST_F(AdoptionTest, EventsOfTheSecondCaptureAreMatchedByName)
{
    const auto add_event = [](RawCapture& to, std::uint64_t handle) {
        to.graph.nodes.push_back({backends::RawEventRecord{handle}, {1}});
        to.capture.handles.events = {{"done", handle}};
    };
    add_event(*first, 100);
    add_event(*second, 200);
    const auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.graph.events, std::vector<std::string>{"done"});
}

TEST_F(AdoptionTest, ATexturesHandleIsRefused)
{
    device->textures->live = {{7, 11}};
    first->graph.nodes.push_back({fetch(first->capture.regions[1].address, 7), {1}});
    second->graph.nodes.push_back({fetch(second->capture.regions[1].address, 7), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel fetch (node 2)"), HasSubstr("parameter 1 byte 0"), HasSubstr("texture")));
    EXPECT_FALSE(device->textures->was_misused);
}

/// Recordings refuse managed memory, too: work must not run on copies of managed memory.
TEST_F(AdoptionTest, ManagedMemoryIsRefused)
{
    device->managed = frame.memory[0].address.flat();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("'x' is managed memory"));
}

TEST_F(AdoptionTest, ACollectiveIsRefused)
{
    for (auto* const one : {first.get(), second.get()})
        std::get<backends::RawKernel>(one->graph.nodes[1].work).kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("an NCCL collective"));
}

TEST_F(AdoptionTest, AnAddressInMemoryIsRefusedUnlessItIsSaidToBeNone)
{
    const MemoryRef x = frame.memory[0];
    const std::uint64_t word = frame.memory[1].address.flat();
    std::memcpy(x.address.pointer<std::int32_t>() + 4, &word, sizeof word);
    EXPECT_THAT(message_of(adopted(first->capture, &second->capture)),
                AllOf(HasSubstr("'x' holds at byte 16"), HasSubstr("lies in 'y'")));
    EXPECT_EQ(read(frame.memory[1]), all(-7));
    interface.regions[0].no_addresses = true;
    EXPECT_TRUE(adopted(first->capture, &second->capture));
}

TEST_F(AdoptionTest, AVariableThatDiffersFromItsImageIsRefusedUnlessItIsFrozen)
{
    module->bias = 7;
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("'bias'"), HasSubstr("Spec::frozen_variables")));
    frozen = {"bias"};
    EXPECT_TRUE(adopted(first->capture, &second->capture));
    frozen.clear();
    module->constant = "bias";
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording);
    EXPECT_EQ(recording->entry.header.info.library_constants, 1U);
}

TEST_F(AdoptionTest, AVariableThatTheProgramAskedForIsRefusedUnlessItIsFrozen)
{
    device->exposed = {"bias"};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("'bias' may be written or read between calls"));
    frozen = {"*"};
    EXPECT_TRUE(adopted(first->capture, &second->capture));
}

class AdoptedSemaphores : public AdoptionTest {
protected:
    AdoptedSemaphores()
    {
        semaphores_run().clear();
        use(*first, 100, 5);
        use(*second, 200, 8);
    }
    /// Lets the work wait for the value `at` first. Lets it signal `at` + 1, and a constant value, at its end.
    static void use(RawCapture& to, std::uint64_t handle, std::uint64_t at)
    {
        using enum backends::SemaphoreAction;
        to.graph.nodes.push_back({backends::RawSemaphores{signal, {{handle + 1, at + 1, 0}, {handle, 77, 0}}}, {1}});
        to.graph.nodes.push_back({backends::RawSemaphores{wait, {{handle, at, 0}}}, {}});
        to.capture.handles.semaphores = {{"shown", handle + 1}, {"ready", handle}};
        to.capture.scalars = {at};
    }
    void declare_frame()
    {
        interface.scalars = {number("frame", DType::u64, std::pair{0.0, 1000.0})};
        interface.ranges = {{0, 1000}};
        frame.scalars = {5};
    }
};

TEST_F(AdoptedSemaphores, NamesThemFollowsTheFrameAndRunsNone)
{
    declare_frame();
    auto recording = take(adopted(first->capture, &second->capture));
    expect_untouched();
    EXPECT_TRUE(semaphores_run().empty());
    EXPECT_EQ(recording.entry.header.info.verification, "bitwise (3 runs), without its semaphores");
    const auto& graph = recording.entry.graph;
    EXPECT_EQ(graph.semaphores, (std::vector<std::string>{"shown", "ready"}));
    const auto& stored = std::get<cachefmt::SemaphoresNode>(graph.nodes[2]);
    EXPECT_EQ(stored.uses[0].slot, (cachefmt::Slot{cachefmt::SlotKind::scalar, 0, 0, 8, 1}));
    EXPECT_EQ(stored.uses[1], (cachefmt::SemaphoreUse{1, 77, {}, 0}));

    // The verified graph runs at once, with the semaphores of the first capture and the values of the call.
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    auto stream = *device->create_stream();
    replay::Bindings bindings{{x, y, {}}, {41}};
    bindings.regions.resize(graph.regions.size());
    ASSERT_TRUE(recording.executable->launch(*stream, bindings));
    EXPECT_EQ(read(y), all(42));
    using enum backends::SemaphoreAction;
    EXPECT_EQ(semaphores_run(),
              (std::vector<backends::RawSemaphores>{{signal, {{101, 42, 0}, {100, 77, 0}}}, {wait, {{100, 41, 0}}}}));
    ASSERT_TRUE(recording.executable->rehearse(*stream, bindings));
    EXPECT_EQ(semaphores_run().size(), 2U) << "a rehearsal runs none";
}

TEST_F(AdoptedSemaphores, AValueThatNoScalarExplainsIsRefused)
{
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("semaphore signal (node 2)"), HasSubstr("the value 6, but 9 in another capture")));
    declare_frame();
    second->capture.scalars = {9};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("a constant, or a declared scalar plus a constant"));
    EXPECT_TRUE(semaphores_run().empty());
}

TEST_F(AdoptedSemaphores, AScalarMustDifferBetweenTheCapturesAndBeFollowed)
{
    declare_frame();
    second->capture.scalars = {5};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("'frame'"), HasSubstr("must differ")));
    second->capture.scalars = {};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument, HasSubstr("0 scalars"));
    interface.scalars.push_back(number("other", DType::i32, std::pair{0.0, 10.0}));
    interface.ranges.push_back({0, 10});
    frame.scalars = {5, 1};
    first->capture.scalars = {5, 1};
    second->capture.scalars = {8, 4};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("'other'"), HasSubstr("another scalar is larger")));
    second->capture.scalars = {8, 5};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("follows the scalar 'other'"), HasSubstr("Spec::values")));
}

TEST_F(AdoptedSemaphores, UndeclaredOnesAreRefused)
{
    declare_frame();
    first->capture.handles.semaphores.pop_back();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("semaphore"), HasSubstr("Spec::semaphores")));
    EXPECT_TRUE(semaphores_run().empty());
}

TEST_F(AdoptedSemaphores, BesideMemoryOfTheGraphsOwnTheyAreRefused)
{
    declare_frame();
    for (auto* one : {&*first, &*second}) one->graph.allocations = {{make(16, 0)}};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("allocates 64 bytes"), HasSubstr("NativeCapture::scratch")));
}

TEST_F(AdoptionTest, WrongArgumentsAreNamed)
{
    AdoptedCapture wrong = first->capture;
    wrong.regions[1] = make(k_count, 0);
    expect_refused(adopted(wrong, nullptr), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("'y'"), HasSubstr("first capture")));
    wrong = first->capture;
    wrong.graph = nullptr;
    expect_refused(adopted(wrong, nullptr), ErrorCode::invalid_argument, HasSubstr("null"));
    interface.scalars.push_back(number("n", DType::i32, std::pair{0.0, 10.0}));
    expect_refused(adopted(first->capture, nullptr), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("scalar 'n'"), HasSubstr("Spec::values")));
}

} // namespace
} // namespace warmgraph::test::adoption_test
