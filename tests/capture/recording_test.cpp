// Recording on a device with flat addresses: captures, images, module state, alignment.
#include "accelerator.hpp"
#include "expect_error.hpp"
#include "flat_fixture.hpp"
#include "number_decl.hpp"
#include "recorder.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph::test {
namespace {

using cachefmt::RegionKind;
using testing::AllOf;
using testing::HasSubstr;

class RecordingTest : public FlatFunction {
protected:
    RecordingTest()
    {
        x = declare("x", RegionKind::input, k_count, 5);
        y = declare("y", RegionKind::output, k_count, 0);
    }
    Result<Recording> recorded(const Callable& callable)
    {
        StreamPool streams{device};
        const std::string name = "f";
        const std::shared_ptr<backends::Device> on = device;
        const Subject subject{name, interface, device, run_once({name, interface, callable, on, streams})};
        return record(subject, frame, header(), modules, phases);
    }
    void launch(Recorder& r, const backends::RawKernel& work)
    {
        EXPECT_TRUE(StreamAccess::impl(r.stream()).stream->launch(work));
    }
    Callable add = [this](Recorder& r) { launch(r, kernel("add", {r["y"], r["x"]}, k_count)); };
    MemoryRef x, y;
};

TEST_F(RecordingTest, FindsPointersAmongParametersAndLeavesTheCallersMemoryAlone)
{
    auto recording = recorded([this](Recorder& r) {
        const Address scratch = r.alloc("scratch", k_count * 4);
        launch(r, kernel("add", {scratch, r["x"]}, k_count));
        launch(r, kernel("add", {r["y"] + 4, scratch + 4}, k_count - 1));
    });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(device->preparations, 1);
    EXPECT_EQ(read(y), all(0));
    const auto& params = stored_kernel(*recording, 1).params;
    EXPECT_EQ(params[0].slots.at(0), (cachefmt::Slot{cachefmt::SlotKind::region, 1, 0, 8, 4}));
    EXPECT_EQ(params[1].slots.at(0), (cachefmt::Slot{cachefmt::SlotKind::region, 2, 0, 8, 4}));
    EXPECT_EQ(recording->entry.header.info.unproven, 0U);
    EXPECT_EQ(recording->entry.header.info.verification, "bitwise (3 runs)");

    const MemoryRef other_x = make(k_count, 40), other_y = make(k_count, -1);
    ASSERT_TRUE(replay(*recording, {other_x, other_y}));
    auto expected = all(42);
    expected[0] = -1;
    EXPECT_EQ(read(other_y), expected);
}

TEST_F(RecordingTest, CapturesATensorAtAnAddressOfExactlyItsAlignment)
{
    frame = {};
    interface = {};
    declare("x", RegionKind::input, k_count, 5, 4);
    declare("y", RegionKind::output, k_count, 0, 256);
    std::vector<std::uint64_t> seen_x, seen_y;
    auto recording = recorded([&](Recorder& r) {
        seen_x.push_back(r["x"].flat() % 8);
        seen_y.push_back(r["y"].flat() % 256);
        add(r);
    });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_THAT(seen_x, testing::Each(4U));
    EXPECT_THAT(seen_y, testing::Each(0U));
    EXPECT_EQ(recording->entry.graph.regions[0].alignment, 4U);
}

TEST_F(RecordingTest, MovesEveryRegionByADistanceOfItsOwn)
{
    for (int i = 0; i < 12; ++i) declare(fmt::format("w{}", i), RegionKind::weights, k_count, i);
    auto recording = recorded([this](Recorder& r) {
        add(r);
        for (int i = 0; i < 12; ++i) {
            const Address part = r.alloc(fmt::format("part{}", i), 64);
            launch(r, kernel("sum", {part, r[fmt::format("w{}", i)]}, k_count));
            launch(r, kernel("add", {r["y"] + static_cast<std::uint64_t>(i) * 4, part}, 1));
        }
    });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unproven, 0U);
}

TEST_F(RecordingTest, RestoredScratchIsAlignedAsItWasWhereverTheDeviceAllocates)
{
    device->lead = 256;
    cachefmt::Graph graph;
    graph.regions = {{"scratch", RegionKind::arena, 64, 512, {}}};
    graph.nodes.emplace_back(
        cachefmt::FillNode{{cachefmt::SlotKind::region, 0, 0, 8, 0}, Bytes(1, std::byte{0x5A}), 64});
    const auto executable = replay::Executable::restore(device, graph, modules, {}, {{MemoryRef{}}, {}}, phases);
    ASSERT_TRUE(executable) << executable.error().message;
    const MemoryRef arena = (*executable)->arena();
    auto* const start = arena.address.pointer<std::byte>();
    std::fill_n(start, arena.size, std::byte{0});
    auto stream = *device->create_stream();
    ASSERT_TRUE((*executable)->launch(*stream, {{MemoryRef{}}, {}}));
    auto* const written = std::find(start, start + arena.size, std::byte{0x5A});
    ASSERT_LE(written + 64, start + arena.size);
    EXPECT_EQ(Address::from_pointer(written).flat() % 512, 0U);
    EXPECT_EQ(std::count(start, start + arena.size, std::byte{0x5A}), 64);
}

TEST_F(RecordingTest, StoresImagesCutDownToTheKernelsInUse)
{
    auto recording = recorded(add);
    ASSERT_TRUE(recording) << recording.error().message;
    ASSERT_EQ(recording->images.size(), 1U);
    EXPECT_EQ(as_text(recording->images[0].second), "cut:add,");
}

TEST_F(RecordingTest, StoresTheWholeImageWhereTheCutOneComputesSomethingElse)
{
    device->error_of_cut_images = 1;
    auto recording = recorded(add);
    ASSERT_TRUE(recording) << recording.error().message;
    ASSERT_EQ(recording->images.size(), 1U);
    EXPECT_EQ(as_text(recording->images[0].second), "whole");
    EXPECT_EQ(recording->entry.graph.images.at(0).digest, sha256(recording->images[0].second));
}

TEST_F(RecordingTest, StoresModuleVariablesThatWereWrittenBefore)
{
    module->bias = 7;
    auto recording = recorded(add);
    ASSERT_TRUE(recording) << recording.error().message;
    const auto& variables = recording->entry.graph.images.at(0).variables;
    ASSERT_EQ(variables.size(), 1U);
    EXPECT_EQ(variables[0].name, "bias");
    const MemoryRef other_x = make(k_count, 40), other_y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {other_x, other_y}));
    EXPECT_EQ(read(other_y), all(47));
}

TEST_F(RecordingTest, ReplaysOfThisProcessRunItsRegisteredModules)
{
    const std::shared_ptr<FlatModule> own = std::move(module);
    module = std::make_unique<FlatModule>(FlatModule::Origin::compiled, 0); // of other launches
    own->bias = 7;
    device->own = {own};
    device->error_of_cut_images = 1; // the registered module computes right all the same: not what is stored
    auto recording = recorded([&](Recorder& r) {
        backends::RawKernel work = kernel("add", {r["y"], r["x"]}, k_count);
        work.module = own.get();
        launch(r, work);
    });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(as_text(recording->images.at(0).second), "whole") << "a cut image was not verified";
    const MemoryRef other_x = make(k_count, 40), other_y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {other_x, other_y}));
    EXPECT_EQ(read(other_y), all(47));
    own->bias = 9; // as the host writes it
    ASSERT_TRUE(replay(*recording, {other_x, other_y}));
    EXPECT_EQ(read(other_y), all(49));

    // As a new process, which finds its own module, or not.
    const auto restore = [&] {
        return replay::Executable::restore(
            device, recording->entry.graph, modules,
            [&](const auto&) { return Result<Bytes>(recording->images[0].second); }, {{other_x, other_y}, {}}, phases);
    };
    EXPECT_TRUE(failed_with(restore(), ErrorCode::not_recordable, "'bias'"))
        << "written, and not with what was recorded";
    own->bias = 7;
    const auto bound = restore();
    ASSERT_TRUE(bound) << bound.error().message;
    own->bias = 11;
    recording->executable = nullptr;
    auto stream = *device->create_stream();
    ASSERT_TRUE((*bound)->launch(*stream, {{other_x, other_y}, {}}));
    EXPECT_EQ(read(other_y), all(51));
    own->bias = 7;
    const auto twin = std::make_shared<FlatModule>(FlatModule::Origin::compiled, 0);
    twin->bias = 7;
    device->own.push_back(twin);
    EXPECT_TRUE(failed_with(restore(), ErrorCode::not_recordable, "2 registered modules")) << "which one is unknown";
    twin->bias = 8;
    EXPECT_TRUE(failed_with(restore(), ErrorCode::not_recordable, "2 registered modules"))
        << "the other one's variables may be those that the function sees";
}

TEST_F(RecordingTest, RefusesAVariableThatTheWorkItselfChanges)
{
    const auto refused = recorded([this](Recorder& r) {
        launch(r, kernel("count", {r.alloc("n", 4)}));
        launch(r, kernel("sum", {r["y"], r["x"]}, k_count));
    });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::not_recordable);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("'bias'"), HasSubstr("from run to run")));
}

TEST_F(RecordingTest, RefusesAVariableThatHoldsAPointer)
{
    module->table = x.address.flat() + 8;
    auto refused = recorded(add);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("'table'"), HasSubstr("byte 0"), HasSubstr("'x'")));
    module->table = make(k_count, 0).address.flat();
    refused = recorded(add);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("'table'"), HasSubstr("allocation of 256 bytes")));
    module->table = module->function = 0x7f8f'3b7a'0a00;
    refused = recorded(add);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("'table'"), HasSubstr("byte 0"), HasSubstr("0x7f8f3b7a0a00"),
                                               HasSubstr("device function")));
}

/// Two modules of equal code in one function, restored for function 7, again for 7, for 8, and later for 8 once more: how many
/// images the recording has, and how many were loaded by each step.
class EqualCode : public RecordingTest {
protected:
    std::vector<int> images_and_loads(bool keeps_state)
    {
        device->code_keeps_state = module->is_stateful = other.is_stateful = keeps_state;
        const auto recording = recorded([&](Recorder& r) {
            const Address part = r.alloc("part", k_count * 4);
            launch(r, kernel("add", {part, r["x"]}, k_count));
            backends::RawKernel second = kernel("add", {r["y"], part}, k_count);
            second.module = &other;
            launch(r, second);
        });
        EXPECT_TRUE(recording) << recording.error().message;
        EXPECT_EQ(recording->images.size(), 1U) << "one file";
        std::vector<int> result{static_cast<int>(recording->entry.graph.images.size()), device->loads};
        {
            const auto first = restored(*recording, 7), again = restored(*recording, 7);
            result.push_back(device->loads);
            const auto second = restored(*recording, 8);
            result.push_back(device->loads);
        }
        const auto later = restored(*recording, 8);
        result.push_back(device->loads);
        return result;
    }
    std::unique_ptr<replay::Executable> restored(const Recording& recording, std::uint64_t function)
    {
        const auto image_of = [&](const cachefmt::ImageRef&) -> Result<Bytes> { return recording.images[0].second; };
        replay::Bindings bindings{{x, y}, {}};
        bindings.regions.resize(recording.entry.graph.regions.size());
        auto result = replay::Executable::restore(device, recording.entry.graph, modules, image_of, bindings, phases,
                                                  replay::OwnModules::bind, function);
        EXPECT_TRUE(result) << result.error().message;
        return std::move(*result);
    }
    FlatModule other{FlatModule::Origin::compiled, 0, device->textures};
};

TEST_F(EqualCode, IsOneModule) { EXPECT_THAT(images_and_loads(false), testing::ElementsAre(1, 1, 1, 1, 1)); }

TEST_F(EqualCode, ThatKeepsStateIsAModuleForEachFunctionAndForEachOfItsModulesAndGoesWithThem)
{
    EXPECT_THAT(images_and_loads(true), testing::ElementsAre(2, 2, 4, 6, 8));
}

TEST_F(RecordingTest, AnOutputThatHoldsTheRightResultsAlreadyProvesNothing)
{
    std::fill_n(y.address.pointer<std::int32_t>(), k_count, 6); // x + 1
    device->restores_nothing = true;
    const auto refused = recorded(add);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::verification_failed) << refused.error().message;
    EXPECT_EQ(read(y), all(6)) << "the caller's is left alone";
}

TEST_F(RecordingTest, RefusesUndeclaredMemoryWithTheAllocationItIsIn)
{
    const MemoryRef secret = make(k_count, 3);
    const auto refused = recorded([&](Recorder& r) { launch(r, kernel("add", {r["y"], secret.address}, k_count)); });
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("node 0 (kernel 'add')"), HasSubstr("parameter 1 byte 0"),
                      HasSubstr(fmt::format("{:#x}", secret.address.flat())), HasSubstr("256 bytes")));
}

TEST_F(RecordingTest, RefusesAnAddressThatWasKeptFromAnEarlierRun)
{
    Address kept;
    const auto refused = recorded([&](Recorder& r) {
        if (kept.is_null()) kept = r["x"];
        launch(r, kernel("add", {r["y"], kept}, k_count));
    });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::not_recordable);
}

/// y = what a texture holds, whose handle is 7 in the recording call.
class TextureTest : public RecordingTest {
protected:
    TextureTest() { device->textures->live = {{7, 11}, {9, 22}}; }
    void declare_handle(const NumberDecl& scalar)
    {
        interface.scalars.push_back(scalar);
        interface.ranges.push_back(*range_of(scalar));
        frame.scalars.push_back(7);
    }
    Callable read_texture = [this](Recorder& r) { launch(r, fetch(r["y"], r.scalar<std::uint64_t>("texture"))); };
};

TEST_F(TextureTest, IsReadByTheHandleThatEachCallGives)
{
    declare_handle(number("texture", DType::u64));
    auto recording = recorded(read_texture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_FALSE(device->textures->was_misused);
    EXPECT_EQ(stored_kernel(*recording).params[1].slots.at(0),
              (cachefmt::Slot{cachefmt::SlotKind::scalar, 0, 0, 8, 0}));
    const MemoryRef other_y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, other_y}));
    EXPECT_EQ(read(other_y), all(11));
    frame.scalars = {9};
    ASSERT_TRUE(replay(*recording, {x, other_y}));
    EXPECT_EQ(read(other_y), all(22));
}

TEST_F(TextureTest, HasNoNeighboursToRunWithAlsoWhereARangeWasDeclared)
{
    declare_handle(number("texture", DType::u64, std::pair{0.0, 1000.0}));
    const auto recording = recorded(read_texture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_FALSE(device->textures->was_misused);
}

TEST_F(TextureTest, IsRefusedWhereItsHandleIsNoScalar)
{
    const auto refused = recorded([this](Recorder& r) { launch(r, fetch(r["y"], 7)); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::not_recordable);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("node 0 (kernel 'fetch')"), HasSubstr("parameter 1 byte 0"), HasSubstr("0x7"),
                      HasSubstr("declare it as a u64 scalar and pass each process's own handle")));
}

} // namespace
} // namespace warmgraph::test
