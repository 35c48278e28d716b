// Tests replay/ alone, on the fake driver: restoring needs no capture and no compiler.
#include <algorithm>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay::executable_test {
namespace {

using cachefmt::ParamKind;
using cachefmt::RegionKind;
using cachefmt::Slot;
using cachefmt::SlotKind;

constexpr std::uint64_t k_bytes = 64;
constexpr std::int32_t k_elements = 16;

Slot region(std::uint32_t target, std::int64_t addend = 0) { return {SlotKind::region, target, 0, 8, addend}; }
cachefmt::Param memory(std::uint32_t target) { return {ParamKind::memory, {}, 0, {region(target)}}; }
cachefmt::Param number(std::int32_t value, std::vector<Slot> slots = {})
{
    cachefmt::Param param;
    append(param.value, value);
    param.slots = std::move(slots);
    return param;
}

class ExecutableTest : public testing::Test {
protected:
    ExecutableTest()
    {
        device = *fake->open("0");
        auto module = device->compiler().compile("kernel add_scalar(memory x, value amount, value n)\n", "");
        image = *(*module)->image();
        stream = *device->create_stream();
        // The graph of y = x; y += a constant from scratch; y += amount + 1.
        graph.regions = {{"x", RegionKind::input, k_bytes, 64, {}},
                         {"y", RegionKind::output, k_bytes, 64, {}},
                         {"scratch", RegionKind::arena, k_bytes, 1, {}},
                         {"table", RegionKind::constant, 4, 1, Bytes(4, std::byte{7})}};
        graph.scalars = {{"amount", DType::i32}};
        graph.images = {{sha256(image), image.size(), {}, "small"}};
        graph.nodes.emplace_back(cachefmt::CopyNode{region(0), region(2), k_bytes});
        graph.nodes.emplace_back(
            cachefmt::KernelNode{0,
                                 "add_scalar",
                                 {1, 1, 1},
                                 {k_elements, 1, 1},
                                 {memory(2), number(0, {{SlotKind::scalar, 0, 0, 4, 1}}), number(k_elements)}});
        graph.nodes.emplace_back(cachefmt::CopyNode{region(2), region(1), k_bytes});
        graph.nodes.emplace_back(cachefmt::CopyNode{region(3), region(1, 4), 4});
        graph.edges = {{0, 1}, {1, 2}, {2, 3}};
        x = buffer(5);
        y = buffer(0);
    }
    MemoryRef buffer(std::int32_t value)
    {
        MemoryRef result = *device->allocate(k_bytes);
        const std::vector<std::int32_t> values(k_elements, value);
        EXPECT_TRUE(device->upload(result.address, std::as_bytes(std::span{values})));
        return result;
    }
    std::vector<std::int32_t> read(const MemoryRef& from)
    {
        std::vector<std::int32_t> values(k_elements);
        EXPECT_TRUE(stream->synchronize());
        EXPECT_TRUE(device->download(std::as_writable_bytes(std::span{values}), from.address));
        return values;
    }
    [[nodiscard]] Bindings bindings(std::int32_t amount) const
    {
        return {{x, y, {}, {}}, {static_cast<std::uint32_t>(amount)}};
    }
    [[nodiscard]] Result<std::unique_ptr<Executable>> restore(const Bindings& at,
                                                              Instantiation when = Instantiation::at_restore)
    {
        Loading loading;
        loading.instantiation = when;
        return Executable::restore(
            device, graph, modules, [this](const auto&) -> Result<Bytes> { return image; }, at, phases,
            RegisteredModules::bind, 0, &loading);
    }
    void break_once(const char* entry, std::uint64_t call = 1)
    {
        fake->inject({entry, call, backends::FaultLength::once, {ErrorCode::driver_failed, "injected"}});
    }

    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
    std::shared_ptr<backends::Device> device;
    std::unique_ptr<backends::Stream> stream;
    Bytes image;
    cachefmt::Graph graph;
    ModuleCache modules;
    Phases phases;
    MemoryRef x, y;
};

TEST_F(ExecutableTest, ReplaysWithScratchConstantsAndScalars)
{
    const auto exec = take(restore(bindings(10)));
    ASSERT_TRUE(exec->launch(*stream, bindings(10)));
    auto values = read(y);
    EXPECT_EQ(values[0], 16);
    EXPECT_EQ(values[1], 0x07070707);
    ASSERT_TRUE(exec->launch(*stream, bindings(-6)));
    EXPECT_EQ(read(y)[0], 0);
}

TEST_F(ExecutableTest, RebindsOnlyTheNodesThatFollowWhatMoved)
{
    const auto exec = restore(bindings(1));
    ASSERT_TRUE(exec);
    ASSERT_TRUE((*exec)->launch(*stream, bindings(1)));
    EXPECT_EQ((*exec)->rebound_nodes(), 0U) << "a hit is built for its final addresses";
    y = buffer(0);
    ASSERT_TRUE((*exec)->launch(*stream, bindings(1)));
    EXPECT_EQ((*exec)->rebound_nodes(), 2U);
    EXPECT_EQ(read(y)[0], 7);
    ASSERT_TRUE((*exec)->launch(*stream, bindings(2)));
    EXPECT_EQ((*exec)->rebound_nodes(), 1U);
}

TEST_F(ExecutableTest, AFailedRebindRewritesEverythingNextTime)
{
    const auto exec = restore(bindings(1));
    ASSERT_TRUE(exec);
    x = buffer(100);
    y = buffer(0);
    fake->inject({"exec.update", 2, backends::FaultLength::once, {ErrorCode::driver_failed, "injected"}});
    EXPECT_FALSE((*exec)->launch(*stream, bindings(1)));
    ASSERT_TRUE((*exec)->launch(*stream, bindings(1)));
    EXPECT_EQ(read(y)[0], 102);
}

TEST_F(ExecutableTest, TheFirstLaunchNeedNotWaitForTheInstantiation)
{
    const auto exec = take(restore(bindings(1), Instantiation::later));
    EXPECT_FALSE(exec->is_complete());
    y = buffer(0); // y has moved since the restore, as for a graph that was preloaded before its call
    ASSERT_TRUE(exec->launch(*stream, bindings(10)));
    EXPECT_EQ(read(y)[0], 16);
    EXPECT_EQ(read(y)[1], 0x07070707);
    EXPECT_FALSE(exec->is_complete());
    ASSERT_TRUE(exec->complete());
    EXPECT_TRUE(exec->is_complete());
    ASSERT_TRUE(exec->launch(*stream, bindings(10)));
    EXPECT_EQ(exec->rebound_nodes(), 0U) << "it is made of what was bound last";
    x = buffer(100);
    ASSERT_TRUE(exec->launch(*stream, bindings(-6)));
    EXPECT_EQ(read(y)[0], 95);
}

TEST_F(ExecutableTest, TheSecondLaunchInstantiatesWhereNobodyElseDid)
{
    const auto exec = restore(bindings(1), Instantiation::later);
    ASSERT_TRUE(exec);
    ASSERT_TRUE((*exec)->launch(*stream, bindings(1)));
    break_once("instantiate");
    EXPECT_FALSE((*exec)->launch(*stream, bindings(2)));
    EXPECT_EQ(read(y)[0], 7) << "nothing was enqueued";
    ASSERT_TRUE((*exec)->launch(*stream, bindings(2)));
    EXPECT_TRUE((*exec)->is_complete());
    EXPECT_EQ(read(y)[0], 8);
}

TEST_F(ExecutableTest, WhatCannotBeLaunchedOneByOneIsInstantiatedByItsFirstLaunch)
{
    const auto exec = restore(bindings(1), Instantiation::later);
    ASSERT_TRUE(exec);
    break_once("stream.check", 3);
    ASSERT_TRUE((*exec)->launch(*stream, bindings(1)));
    EXPECT_TRUE((*exec)->is_complete());
    EXPECT_EQ(read(y)[0], 7);
}

TEST_F(ExecutableTest, ALaunchOneByOneThatEndsHalfWaySaysSo)
{
    const auto exec = restore(bindings(1), Instantiation::later);
    ASSERT_TRUE(exec);
    break_once("launch");
    EXPECT_TRUE(failed_with((*exec)->launch(*stream, bindings(1)), ErrorCode::partly_launched, "node 1 of 4"));
    ASSERT_TRUE((*exec)->launch(*stream, bindings(1)));
    EXPECT_EQ(read(y)[0], 7);
}

TEST_F(ExecutableTest, AGraphThatNeedsToBeOneIsInstantiatedAtOnce)
{
    std::get<cachefmt::KernelNode>(graph.nodes[1]).attributes.push_back({2, Bytes(4, std::byte{1}), {}});
    const auto exec = restore(bindings(1), Instantiation::later);
    ASSERT_FALSE(exec) << "this backend has no such attribute: who instantiates is told";
    EXPECT_THAT(exec.error().message, StartsWith("instantiate: "));
}

TEST_F(ExecutableTest, ARehearsalAndAnUploadAreOfTheInstantiatedGraph)
{
    for (const bool is_rehearsal : {true, false}) {
        const auto exec = restore(bindings(1), Instantiation::later);
        ASSERT_TRUE(exec);
        ASSERT_TRUE(is_rehearsal ? (*exec)->rehearse(*stream, bindings(1)) : (*exec)->upload());
        EXPECT_TRUE((*exec)->is_complete());
    }
}

TEST_F(ExecutableTest, BindingsThatAreMissingTooSmallOrMisalignedAreNamed)
{
    const auto refused = [this](const Bindings& at, const char* text) {
        EXPECT_TRUE(failed_with(restore(at), ErrorCode::invalid_argument, text));
    };
    Bindings at = bindings(1);
    at.regions[0] = {};
    refused(at, "region 'x' is not bound");
    at = bindings(1);
    at.regions[1].size = k_bytes - 1;
    refused(at, "region 'y' has 63 bytes, expected at least 64");
    at = bindings(1);
    at.regions[0].address.offset = 4;
    refused(at, "expected a multiple of 64");
    at = bindings(1);
    at.scalars.clear();
    refused(at, "0 scalars");
}

TEST_F(ExecutableTest, AnImageIsLoadedOnceAndItsAbsenceIsTheRestoresFailure)
{
    const auto missing = Executable::restore(
        device, graph, modules, [](const auto&) -> Result<Bytes> { return fail(ErrorCode::not_found, "gone"); },
        bindings(1), phases);
    EXPECT_THAT(message_of(missing), HasSubstr("gone"));
    ASSERT_TRUE(restore(bindings(1)));
    ASSERT_TRUE(restore(bindings(1)));
    EXPECT_EQ(modules.count(), 1U);
}

TEST_F(ExecutableTest, ADeviceStaysOpenAsLongAsItsModulesAreCached)
{
    auto cache = std::make_unique<ModuleCache>();
    const auto before = fake->live().modules;
    const auto image_of = [this](const auto&) -> Result<Bytes> { return image; };
    ASSERT_TRUE(Executable::restore(device, graph, *cache, image_of, bindings(1), phases));
    EXPECT_EQ(fake->live().modules, before + 1);
    const std::weak_ptr<backends::Device> watched = device;
    stream.reset();
    device.reset();
    EXPECT_FALSE(watched.expired()) << "a module is unloaded through its device";
    cache.reset();
    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(fake->live().modules, before);
}

TEST_F(ExecutableTest, InstantiatesForTheNextLaunchsAddressesWhereThatIsAskedFor)
{
    const auto exec = restore(bindings(1));
    ASSERT_TRUE(exec);
    ASSERT_TRUE((*exec)->launch(*stream, bindings(1)));
    ASSERT_TRUE(stream->synchronize());
    (*exec)->instantiate_at_next_launch();
    EXPECT_FALSE((*exec)->is_complete());
    x = buffer(100);
    y = buffer(0);
    break_once("exec.update"); // would make an update fail; no update is needed
    ASSERT_TRUE((*exec)->launch(*stream, bindings(2)));
    EXPECT_TRUE((*exec)->is_complete());
    EXPECT_EQ(read(y)[0], 103);
}

TEST_F(ExecutableTest, AnInstantiationThatFailsThenIsTriedAgain)
{
    const auto exec = restore(bindings(1));
    ASSERT_TRUE(exec);
    (*exec)->instantiate_at_next_launch();
    break_once("instantiate");
    EXPECT_FALSE((*exec)->launch(*stream, bindings(10)));
    ASSERT_TRUE((*exec)->launch(*stream, bindings(10)));
    EXPECT_EQ(read(y)[0], 16);
}

TEST_F(ExecutableTest, AnEventThatTheGraphOnlyWaitsForIsTheCallersToGive)
{
    graph.events = {"ready"};
    graph.nodes.emplace_back(cachefmt::EventWaitNode{0});
    EXPECT_TRUE(failed_with(restore(bindings(1)), ErrorCode::invalid_argument, "'ready'"))
        << "an event of its own would wait for nothing";
}

TEST_F(ExecutableTest, NothingIsLeakedWhenInstantiatingFails)
{
    const auto before = fake->live();
    fake->inject({"instantiate", 1, backends::FaultLength::once, {ErrorCode::out_of_memory, "injected"}});
    EXPECT_TRUE(failed_with(restore(bindings(1)), ErrorCode::out_of_memory));
    auto after = fake->live();
    after.modules = before.modules; // the module cache keeps the loaded image, so `modules` need not agree
    EXPECT_EQ(after, before);
}

} // namespace
} // namespace warmgraph::replay::executable_test
