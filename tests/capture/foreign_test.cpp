// Features that need flat addresses are refused by name, with the cure, on a device that does not have such addresses.
#include "facade_fixture.hpp"

namespace warmgraph::test::foreign_test {
namespace {

class Foreign : public FacadeTest {
protected:
    static void expect_refused(const std::function<void()>& f, ErrorCode code, const std::string& text)
    {
        EXPECT_TRUE(failed_with(thrown_by(f), code, text)) << "expected: " << text;
    }
    [[nodiscard]] Spec versioned() const
    {
        Spec spec = vector_spec();
        spec.version = "1";
        return spec;
    }
    [[nodiscard]] Adoption adoption()
    {
        Adoption result;
        result.first.graph = &graph;
        result.first.regions = {{"x", x}, {"y", y}};
        return result;
    }
    void launch(const Launch& geometry) { device.stream().launch(program, "add_one", geometry, x, y); }
    int graph = 0; ///< this graph is never read
    Buffer x = floats(0), y = device.allocate(k_count * 4);
};

TEST_F(Foreign, GraphsCannotBeAdoptedHere)
{
    Cache cache{options()};
    expect_refused([&] { (void)cache.adopt("f", device, versioned(), adoption()); }, ErrorCode::unsupported,
                   "'f' cannot be adopted, because " + device.id());
    EXPECT_TRUE(entries().empty());
    EXPECT_NO_THROW((void)add_one(cache, "f")) << "the name stayed free";
}

TEST_F(Foreign, AnAdoptionWithoutVersionGraphOrWithScalarsIsInvalid)
{
    Cache cache{options()};
    const auto adopt = [&](const Spec& spec, const Adoption& of) { (void)cache.adopt("f", device, spec, of); };
    expect_refused([&] { adopt(vector_spec(), adoption()); }, ErrorCode::invalid_argument, "Spec::version");
    Spec scalars = versioned();
    scalars.scalars = {scalar("factor", f32)};
    expect_refused([&] { adopt(scalars, adoption()); }, ErrorCode::invalid_argument, "'factor'");
    Adoption none = adoption();
    none.first.graph = nullptr;
    expect_refused([&] { adopt(versioned(), none); }, ErrorCode::invalid_argument, "the graph of 'f' is null");
    Adoption half = adoption();
    half.second = NativeCapture{};
    expect_refused([&] { adopt(versioned(), half); }, ErrorCode::invalid_argument, "the graph of 'f' is null");
    expect_refused([&] { (void)cache.adopt("../f", device, versioned(), adoption()); }, ErrorCode::invalid_argument,
                   "function name");
}

TEST_F(Foreign, LaunchAttributesAreRefused)
{
    Launch launched = k_launch;
    launched.shared_bytes = 1024;
    expect_refused([&] { launch(launched); }, ErrorCode::unsupported, "1024 bytes of dynamic shared memory");
    launched = k_launch;
    launched.cluster = {2};
    expect_refused([&] { launch(launched); }, ErrorCode::unsupported, "launch attribute 4");
    launched = k_launch;
    launched.cooperation = Cooperation::grid;
    expect_refused([&] { launch(launched); }, ErrorCode::unsupported, "launch attribute 2");
    launched = k_launch;
    launched.start = Start::dependent;
    expect_refused([&] { launch(launched); }, ErrorCode::unsupported, "launch attribute 6");
}

TEST_F(Foreign, APointerIsNoMemoryOfThisDevice)
{
    Cache cache{options()};
    Function f = add_one(cache);
    const MemoryRef pointer{Address::from_pointer(this), k_count * 4};
    expect_refused([&] { f({{"x", pointer}, {"y", y}}); }, ErrorCode::invalid_argument, "'x' is at base 0x100");
}

TEST_F(Foreign, PageLockedMemoryAndNativeStreamsDoNotExist)
{
    expect_refused([&] { (void)device.allocate_host(64); }, ErrorCode::unsupported, "page-locked");
    EXPECT_EQ(device.stream().native(), nullptr);
    EXPECT_NO_THROW(device.prepare_recording()) << "there is nothing to prepare";
}

TEST_F(Foreign, HostFunctionsAreRegisteredOnce)
{
    static const auto nothing = [](void*) {};
    EXPECT_NO_THROW(register_host_function("foreign.nothing", nothing, nullptr));
    EXPECT_NO_THROW(register_host_function("foreign.nothing", nothing, nullptr)) << "the same again";
    expect_refused([&] { register_host_function("foreign.nothing", nothing, this); }, ErrorCode::invalid_argument,
                   "foreign.nothing");
    expect_refused([&] { register_host_function("", nothing, nullptr); }, ErrorCode::invalid_argument, "name");
    expect_refused([&] { register_host_function("foreign.null", nullptr, nullptr); }, ErrorCode::invalid_argument,
                   "foreign.null");
}

} // namespace
} // namespace warmgraph::test::foreign_test
