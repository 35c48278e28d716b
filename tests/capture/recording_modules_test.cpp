// Recording on a device with flat addresses: variables of modules, registered modules, and modules with equal code.
#include "recording_fixture.hpp"

namespace warmgraph::test::recording_modules_test {
namespace {

TEST_F(RecordingTest, RefusesAVariableThatDiffersFromItsImage)
{
    module->bias = 7;
    expect_refused(
        add, AllOf(HasSubstr("'bias'"), HasSubstr("Device::register_module"), HasSubstr("Spec::frozen_variables")));
    EXPECT_EQ(read(y), all(12)) << "the answer";
    record_options.frozen_variables = {"table", "bia"};
    expect_refused(add, HasSubstr("'bias'"));
}

TEST_F(RecordingTest, RefusesAVariableThatTheProgramAskedForAndNobodyVouchesFor)
{
    device->exposed = {"bias"}; // the variable's value is still the image's
    expect_refused(add, AllOf(HasSubstr("'bias' may be written or read between calls"), HasSubstr("register_module"),
                              HasSubstr("Spec::frozen_variables")));
    for (const char* const name : {"bias", "*"}) {
        record_options.frozen_variables = {name};
        EXPECT_TRUE(recorded(add)) << name;
    }
}

TEST_F(RecordingTest, AConstantOfALibrarysIsStoredAndCounted)
{
    module->bias = 7;
    module->constant = "bias";
    const auto recording = take(recorded(add));
    EXPECT_EQ(recording.entry.header.info.library_constants, 1U);
    EXPECT_EQ(recording.entry.graph.images.at(0).variables.size(), 1U);
}

TEST_F(RecordingTest, StoresModuleVariablesThatTheCallerVouchesFor)
{
    module->bias = 7;
    record_options.frozen_variables = {"bias"};
    auto recording = take(recorded(add));
    const auto& variables = recording.entry.graph.images.at(0).variables;
    ASSERT_EQ(variables.size(), 1U);
    EXPECT_EQ(variables[0].name, "bias");
    const MemoryRef other_x = make(k_count, 40), other_y = make(k_count, 0);
    ASSERT_TRUE(replay(recording, {other_x, other_y}));
    EXPECT_EQ(read(other_y), all(47));
}

TEST_F(RecordingTest, ReplaysOfThisProcessRunItsRegisteredModules)
{
    const std::shared_ptr<FlatModule> own = std::move(module);
    module = std::make_unique<FlatModule>(FlatModule::Origin::compiled, 0); // other launches use this module
    own->bias = 7;
    device->own = {own};
    device->error_of_cut_images = 1; // the registered module still computes right, but the stored image does not
    auto recording = take(recorded([&](Recorder& r) {
        backends::RawKernel work = kernel("add", {r["y"], r["x"]}, k_count);
        work.module = own.get();
        launch(r, work);
    }));
    EXPECT_EQ(as_text(recording.images.at(0).second), "whole") << "a cut image was not verified";
    const MemoryRef other_x = make(k_count, 40), other_y = make(k_count, 0);
    ASSERT_TRUE(replay(recording, {other_x, other_y}));
    EXPECT_EQ(read(other_y), all(47));
    own->bias = 9; // as if the host wrote it
    ASSERT_TRUE(replay(recording, {other_x, other_y}));
    EXPECT_EQ(read(other_y), all(49));

    // Restores in a new process, which may have its own module.
    const auto restore = [&] {
        return replay::Executable::restore(
            device, recording.entry.graph, modules,
            [&](const auto&) { return Result<Bytes>(recording.images[0].second); }, {{other_x, other_y}, {}}, phases);
    };
    EXPECT_TRUE(failed_with(restore(), ErrorCode::not_recordable, "'bias'"))
        << "written, and not with what was recorded";
    own->bias = 7;
    const auto bound = take(restore());
    own->bias = 11;
    recording.executable = nullptr;
    auto stream = *device->create_stream();
    ASSERT_TRUE(bound->launch(*stream, {{other_x, other_y}, {}}));
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

/// The answer changes the variable, too, so `frozen_variables` does not help. The change that a trial makes is undone.
TEST_F(RecordingTest, RefusesAVariableThatTheWorkItselfChangesAndPutsItBack)
{
    const Callable counting = [this](Recorder& r) {
        launch(r, kernel("count", {r.alloc("n", 4)}));
        launch(r, kernel("sum", {r["y"], r["x"]}, k_count));
    };
    expect_refused(counting, HasSubstr("'bias'"));
    EXPECT_EQ(module->bias, 2) << "by the answer";
    record_options.frozen_variables = {"*"};
    expect_refused(counting, AllOf(HasSubstr("'bias'"), HasSubstr("from run to run")));
    EXPECT_EQ(module->bias, 3) << "by the second answer alone";
    module->bias = 0; // so that the answer sets the variable to the image's value
    expect_refused(counting, AllOf(HasSubstr("'bias'"), HasSubstr("from run to run")));
    EXPECT_EQ(module->bias, 1);
}

TEST_F(RecordingTest, RefusesAVariableThatHoldsAPointerWhoeverVouchesForIt)
{
    record_options.frozen_variables = {"*"};
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
    EXPECT_THAT(message_of(refused), AllOf(HasSubstr("'table'"), HasSubstr("byte 0"), HasSubstr("0x7f8f3b7a0a00"),
                                           HasSubstr("device function")));
}

/// Two modules with equal code are in one function. The recording is restored for function 7, again for 7, for 8, and
/// later again for 8. Returns the number of images in the recording, and the number of loads after each step.
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
                                                  replay::RegisteredModules::bind, function);
        EXPECT_TRUE(result) << result.error().message;
        return std::move(*result);
    }
    FlatModule other{FlatModule::Origin::compiled, 0, device->textures};
};

TEST_F(EqualCode, IsOneModule) { EXPECT_THAT(images_and_loads(false), ElementsAre(1, 1, 1, 1, 1)); }

TEST_F(EqualCode, ThatKeepsStateIsAModuleForEachFunctionAndForEachOfItsModulesAndGoesWithThem)
{
    EXPECT_THAT(images_and_loads(true), ElementsAre(2, 2, 4, 6, 8));
}

TEST_F(EqualCode, LoadedAheadServesTheFirstFunctionThatRunsItAlsoWhereItKeepsState)
{
    device->code_keeps_state = module->is_stateful = true;
    const auto recording = recorded([&](Recorder& r) { launch(r, kernel("add", {r["y"], r["x"]}, k_count)); });
    ASSERT_TRUE(recording) << recording.error().message;
    auto image = recording->entry.graph.images[0];
    image.digest = sha256(as_bytes("of another name: the recording has its own loaded"));
    const auto loaded_for = [&](const replay::ModuleUser& user) {
        return *modules.load(device, image, user, [&]() -> Result<Bytes> { return recording->images[0].second; });
    };
    const int before = device->loads;
    const auto ahead = loaded_for(replay::k_nobody);
    EXPECT_EQ(loaded_for(replay::k_nobody), ahead);
    EXPECT_EQ(device->loads, before + 1);
    EXPECT_EQ(loaded_for({7, 0}), ahead);
    EXPECT_EQ(loaded_for({7, 0}), ahead) << "it is function 7's now";
    EXPECT_EQ(device->loads, before + 1);
    const auto of_another = loaded_for({8, 0});
    EXPECT_NE(of_another, ahead);
    EXPECT_EQ(device->loads, before + 2);
    EXPECT_EQ(loaded_for(replay::k_nobody), ahead) << "nothing is loaded for nobody where somebody has it";
    EXPECT_EQ(device->loads, before + 2);
}

} // namespace
} // namespace warmgraph::test::recording_modules_test
