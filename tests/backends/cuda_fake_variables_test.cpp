// Tests which variables of a module are compared with the image. The CUDA backend decides this by their names.

#include "expect_error.hpp"
#include "fake_cuda/steering.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::test::cuda_fake_variables_test {
namespace {

using warmgraph::test::FakeCuda;

class CudaFakeVariables : public testing::Test {
protected:
    /// A module with one variable. Its value is 1 in the image and 2 now.
    std::unique_ptr<Module> written(const std::string& name)
    {
        const std::string source = std::string(warmgraph::test::k_fake_cuda_program) + "variable " + name + " = 1\n";
        auto module = *device->compiler().compile(source, "");
        const std::vector<cachefmt::ModuleVariable> two{{name, Bytes{std::byte{2}, {}, {}, {}}, {}}};
        EXPECT_TRUE(warmgraph::test::succeeded(module->write_variables(two)));
        return module;
    }
    /// The names of the variables whose value differs from the image.
    static std::vector<std::string> changed(Module& module)
    {
        std::vector<std::string> names;
        const auto found = module.changed_variables();
        EXPECT_TRUE(found) << found.error().message;
        for (const auto& variable : *found) names.push_back(variable.name);
        return names;
    }
    FakeCuda fake;
    std::shared_ptr<Backend> backend = make_cuda_backend(FakeCuda::options());
    std::shared_ptr<Device> device = *backend->open("");
};

TEST_F(CudaFakeVariables, OfTheDeviceRuntimeAreNobodysToWrite)
{
    for (const char* const name : {"__nv_static_51__76f6e0b7_22_cuda_device_runtime_cu_3f18d910_errorTable",
                                   "__nv_static_28_22_cuda_device_runtime_cu_x"})
        EXPECT_THAT(changed(*written(name)), IsEmpty()) << name;
}

TEST_F(CudaFakeVariables, ThatOnlyResembleThoseAreLookedAt)
{
    for (const char* const name :
         {"__nv_static_51__76f6e0b7_25_my_cuda_device_runtime_cu_3f18d910_table", // from a program's own file
          "__nv_static_51__76f6e0b7_122_cuda_device_runtime_cu_table", "__nv_static_51__76f6e0b7_8_table_cu_table",
          "_22_cuda_device_runtime_cu_table",       // a name that a program could give
          "cudartErrorTable", "cudartErrorCnpMap"}) // without an address in the name, and with a size of 4 bytes
        EXPECT_THAT(changed(*written(name)), ElementsAre(name)) << name;
}

} // namespace
} // namespace warmgraph::backends::test::cuda_fake_variables_test
