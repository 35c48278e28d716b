// Graphs that somebody else captured: proven by a second capture, or taken by range when that is allowed.
#include "adoption.hpp"
#include "flat_fixture.hpp"

namespace warmgraph::test {
namespace {

using cachefmt::RegionKind;
using testing::AllOf;
using testing::HasSubstr;

class AdoptionTest : public FlatFunction {
protected:
    AdoptionTest()
    {
        declare("x", RegionKind::input, k_count, 5);
        declare("y", RegionKind::output, k_count, -7);
        first = captured(frame.memory, pool);
        const MemoryRef other_pool = make(k_count + 4, 0);
        (void)make(1000, 0); // padding, so that each region moves by a distance of its own
        const MemoryRef other_y = make(k_count, 0);
        (void)make(5000, 0);
        second = captured({make(k_count, 0), other_y}, other_pool);
    }
    /// tmp = x + bias; y = tmp + bias.
    struct Captured {
        backends::RawGraph graph;
        AdoptedCapture capture;
    };
    std::unique_ptr<Captured> captured(std::vector<MemoryRef> regions, const MemoryRef& scratch)
    {
        auto result = std::make_unique<Captured>();
        result->graph.nodes.push_back({kernel("add", {scratch.address + 16, regions[0].address}, k_count), {}});
        result->graph.nodes.push_back({kernel("add", {regions[1].address, scratch.address + 16}, k_count), {0}});
        result->capture = {&result->graph, std::move(regions), {{"pool", scratch}}, {}};
        return result;
    }
    Result<Recording> adopted(const AdoptedCapture& one, const AdoptedCapture* other, Proof proof = Proof::required)
    {
        const Callable none;
        StreamPool streams{device};
        const Subject subject{"f", interface, none, device, streams};
        return adopt(subject, frame, header(), one, other, proof, modules, phases);
    }
    void expect_refused(const Result<Recording>& result, ErrorCode code, const testing::Matcher<std::string>& why)
    {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, code);
        EXPECT_THAT(result.error().message, why);
        expect_untouched();
    }
    void expect_untouched()
    {
        EXPECT_EQ(read(frame.memory[0]), all(5));
        EXPECT_EQ(read(frame.memory[1]), all(-7));
        EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 99));
    }
    MemoryRef pool = make(k_count + 4, 99);
    std::unique_ptr<Captured> first, second;
};

TEST_F(AdoptionTest, WithTwoCapturesEveryWordIsProvenAndTheCallersMemoryIsAsItWas)
{
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    expect_untouched();
    const auto& info = recording->entry.header.info;
    EXPECT_EQ(info.unproven, 0U);
    EXPECT_EQ(info.verification, "bitwise (3 runs)");
    const auto& regions = recording->entry.graph.regions;
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[2].name, "pool");
    EXPECT_EQ(regions[2].kind, RegionKind::arena);

    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(42));
    EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 99)) << "the restored graph has its own";
}

TEST_F(AdoptionTest, WithOneCaptureItIsRefusedUnlessUnprovenAddressesAreAllowed)
{
    expect_refused(adopted(first->capture, nullptr), ErrorCode::not_recordable,
                   AllOf(HasSubstr("second capture"), HasSubstr("'pool'")));
    auto recording = adopted(first->capture, nullptr, Proof::allow_unproven);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unproven, 4U);
    expect_untouched();
    const MemoryRef x = make(k_count, 1), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(3));
}

TEST_F(AdoptionTest, ASecondCaptureOfOtherWorkIsRefused)
{
    std::get<backends::RawKernel>(second->graph.nodes[1].work).grid[0] = 2;
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("node 1 (kernel 'add')"), HasSubstr("grid")));
}

TEST_F(AdoptionTest, ScratchThatIsReadBeforeItIsWrittenIsRefused)
{
    first->graph.nodes.erase(first->graph.nodes.begin());
    second->graph.nodes.erase(second->graph.nodes.begin());
    first->graph.nodes[0].dependencies.clear();
    second->graph.nodes[0].dependencies.clear();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("memory it did not write"));
}

TEST_F(AdoptionTest, WorkThatWritesPastADeclaredRegionIsFoundOnTheCopies)
{
    // The original has room behind y; the restored one must not rely on it.
    frame.tensors[1].sizes[0] = k_count - 8;
    const auto result = adopted(first->capture, &second->capture);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::verification_failed);
    EXPECT_THAT(result.error().message, HasSubstr("outside 'y'"));
}

TEST_F(AdoptionTest, EventsOfTheSecondCaptureAreMatchedByName)
{
    const auto add_event = [](Captured& to, std::uint64_t handle) {
        to.graph.nodes.push_back({backends::RawEventRecord{handle}, {1}});
        to.capture.events = {{"done", handle}};
    };
    add_event(*first, 100);
    add_event(*second, 200);
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.graph.events, std::vector<std::string>{"done"});
}

TEST_F(AdoptionTest, ATexturesHandleIsRefused)
{
    device->textures->live = {{7, 11}};
    first->graph.nodes.push_back({fetch(first->capture.regions[1].address, 7), {1}});
    second->graph.nodes.push_back({fetch(second->capture.regions[1].address, 7), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("node 2 (kernel 'fetch')"), HasSubstr("parameter 1 byte 0"), HasSubstr("texture")));
    EXPECT_FALSE(device->textures->was_misused);
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
    interface.scalars.push_back(scalar("n", DType::i32, 0, 10));
    expect_refused(adopted(first->capture, nullptr), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("scalar 'n'"), HasSubstr("Spec::values")));
}

} // namespace
} // namespace warmgraph::test
