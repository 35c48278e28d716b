// Tests which image a module gets, and when it gets no image.
#include "cubin/cubin.hpp"
#include "cubin/cut.hpp"
#include "cubin/image_table.hpp"
#include "cubin_files.hpp"

namespace warmgraph::backends::cuda::test::cubin_image_table_test {
namespace {

using Module = ModuleCall::Module;
using warmgraph::test::cubin_file;

class ImageTables : public testing::Test {
protected:
    // Makes an image with these kernels of several.cubin.
    static LoadedImage image(std::uint32_t id, const std::vector<std::string>& kernels)
    {
        static const Bytes whole = cubin_file("several.cubin");
        return {std::make_shared<const Bytes>(*cut_cubin(whole, kernels)), id};
    }
    // Makes an image with the same kernels, but with other code.
    static LoadedImage variant(std::uint32_t id, const std::vector<std::string>& kernels)
    {
        Bytes bytes = *image(id, kernels).bytes;
        const auto file = elf::File::parse(bytes);
        const auto code = warmgraph::test::section_number(*file, ".text." + kernels.front());
        bytes[file->sections()[*code].offset] ^= std::byte{1};
        return {std::make_shared<const Bytes>(std::move(bytes)), id};
    }
    static ModuleCall call(const void* handle, Module module) { return {.handle = handle, .module = module}; }
    static ModuleCall launch(const void* handle, const char* kernel)
    {
        return {.handle = handle, .module = Module::older, .function = kernel};
    }

    int m_handles[4] = {};
    const void* m_one = &m_handles[0];
    const void* m_two = &m_handles[1];
    ImageTable m_table;
};

TEST_F(ImageTables, GiveAModuleTheImageThatArrivedWhileItWasLoaded)
{
    const auto first = image(1, {"scale"}), second = image(2, {"scale"});
    m_table.associate(call(m_one, Module::made), {first});
    m_table.associate(call(m_two, Module::made), {second});
    EXPECT_EQ(m_table.find(m_one), first.bytes);
    EXPECT_EQ(m_table.find(m_two), second.bytes);
    EXPECT_EQ(m_table.find(&m_handles[2]), nullptr);
}

TEST_F(ImageTables, GiveALazilyLoadedModuleTheImageThatArrivedAtItsFirstLaunch)
{
    const auto lazy = image(1, {"scale", "sum"});
    m_table.associate(launch(m_one, "sum"), {lazy});
    EXPECT_EQ(m_table.find(m_one), lazy.bytes);
}

TEST_F(ImageTables, LeaveOutAnImageWithoutTheKernel)
{
    const auto other = image(1, {"jumps"}), right = image(2, {"sum"});
    m_table.associate(launch(m_one, "sum"), {other});
    EXPECT_EQ(m_table.find(m_one), nullptr);
    m_table.associate(launch(m_one, "sum"), {other, right});
    EXPECT_EQ(m_table.find(m_one), right.bytes);
    m_table.associate(launch(m_one, "sum"), {other});
    EXPECT_EQ(m_table.find(m_one), right.bytes) << "the driver's own code may be loaded at any launch";
}

TEST_F(ImageTables, TakeNoneOfTwoThatBothFit)
{
    m_table.associate(launch(m_one, "sum"), {image(1, {"sum"}), variant(2, {"sum"})});
    EXPECT_EQ(m_table.find(m_one), nullptr);
    m_table.associate(launch(m_one, "sum"), {image(3, {"sum"})});
    EXPECT_EQ(m_table.find(m_one), nullptr) << "a later one makes it no clearer";
    const auto fresh = image(4, {"sum"});
    m_table.associate(call(m_one, Module::made), {fresh});
    EXPECT_EQ(m_table.find(m_one), fresh.bytes);
}

TEST_F(ImageTables, ChooseByAllKernelsWhereTheCallNamesNone)
{
    const auto small = image(1, {"sum"}), large = image(2, {"sum", "scale"});
    ModuleCall both = call(m_one, Module::older);
    both.all_functions = {"scale", "sum"};
    m_table.associate(both, {small, large});
    EXPECT_EQ(m_table.find(m_one), large.bytes);
}

TEST_F(ImageTables, AreSureOfTwoCopiesOfTheSame)
{
    const auto once = image(1, {"sum"}), again = image(2, {"sum"});
    m_table.associate(launch(m_one, "sum"), {once, again});
    ASSERT_NE(m_table.find(m_one), nullptr);
    EXPECT_EQ(*m_table.find(m_one), *once.bytes);
}

TEST_F(ImageTables, ForgetAModuleThatIsUnloaded)
{
    m_table.associate(call(m_one, Module::made), {image(1, {"sum"})});
    m_table.associate(call(m_two, Module::made), {image(2, {"sum"})});
    m_table.forget_module(m_one);
    EXPECT_EQ(m_table.find(m_one), nullptr);
    EXPECT_NE(m_table.find(m_two), nullptr);
    m_table.forget_image(2);
    EXPECT_EQ(m_table.find(m_two), nullptr);
}

TEST_F(ImageTables, ForgetTheModulesOfAContextThatGoes)
{
    ModuleCall in_context = call(m_one, Module::made);
    in_context.context = &m_handles[3];
    m_table.associate(in_context, {image(1, {"sum"})});
    m_table.associate(call(m_two, Module::made), {image(2, {"sum"})});
    m_table.forget_context(&m_handles[3]);
    EXPECT_EQ(m_table.find(m_one), nullptr);
    EXPECT_NE(m_table.find(m_two), nullptr);
}

TEST_F(ImageTables, DoNotGiveAHandleThatIsUsedAgainItsOldImage)
{
    m_table.associate(call(m_one, Module::made), {image(1, {"sum"})});
    m_table.associate(call(m_one, Module::made), {}); // the module is loaded lazily, so its image comes later
    EXPECT_EQ(m_table.find(m_one), nullptr);

    m_table.associate(call(m_two, Module::made), {image(2, {"sum"})});
    m_table.associate(launch(m_two, "sum"), {variant(3, {"sum"})}); // the module's unloading was not noticed
    EXPECT_EQ(m_table.find(m_two), nullptr) << "either may be the module's";

    const void* const three = &m_handles[2];
    const auto next = image(5, {"scale"});
    m_table.associate(call(three, Module::made), {image(4, {"sum"})});
    m_table.associate(launch(three, "scale"), {next});
    EXPECT_EQ(m_table.find(three), next.bytes) << "the old one has no such kernel";
}

TEST_F(ImageTables, TakeNothingThatIsNoCubin)
{
    m_table.associate(call(m_one, Module::made), {{std::make_shared<const Bytes>(Bytes(64)), 1}});
    EXPECT_EQ(m_table.find(m_one), nullptr);
}

} // namespace
} // namespace warmgraph::backends::cuda::test::cubin_image_table_test
