// Tests which code may write the variables of a module.

#include "cubin/variable_access.hpp"
#include "matchers.hpp"

namespace warmgraph::backends::cuda::test::variable_access_test {
namespace {

using Owner = VariableAccess::Owner;

TEST(KnownLibraries, AreCudasAndPyTorchs)
{
    for (const char* const path :
         {"/usr/local/cuda/lib64/libcublas.so.13", "libcublasLt.so.13", "/x/libcudnn_engines_precompiled.so.9",
          "libcublas-1a2b3c4d.so.12.6", "libnppial.so.13", "libtorch_cuda.so", "libcusolverMg.so.12"})
        EXPECT_TRUE(is_known_library(path)) << path;
}

TEST(KnownLibraries, AreNotTheProgramNorItsOwn)
{
    for (const char* const path :
         {"", "./serve", "/opt/libcublas/libmine.so", "libcustom_ops.so", "libcublas_wrapper.so",
          "libtorch_cuda_mine.so", "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"})
        EXPECT_FALSE(is_known_library(path)) << path;
}

class VariableAccesses : public testing::Test {
protected:
    static auto asked(const void* module, const std::vector<std::string>& variables)
    {
        return AllOf(Field(&VariableAccess::VariableQueries::module, module),
                     Field(&VariableAccess::VariableQueries::variables, variables));
    }
    int m_handles[4] = {};
    const void* m_module = &m_handles[0];
    const void* m_other = &m_handles[1];
    const void* m_library = &m_handles[2];
    VariableAccess m_access;
};

TEST_F(VariableAccesses, AVariableIsCountedOnce)
{
    m_access.module_made(m_module, Owner::program);
    EXPECT_THAT(m_access.queries(), IsEmpty());
    for (const char* const name : {"b", "a", "b"}) m_access.asked_of_module(m_module, name);
    EXPECT_THAT(m_access.queries(), ElementsAre(asked(m_module, {"a", "b"})));
    EXPECT_EQ(m_access.count(), 2U);
}

TEST_F(VariableAccesses, AModuleFromBeforeIsTheProgramsOwn)
{
    m_access.asked_of_module(m_module, "a");
    EXPECT_THAT(m_access.queries(), ElementsAre(asked(m_module, {"a"})));
    EXPECT_FALSE(m_access.is_of_known_library(m_module));
}

TEST_F(VariableAccesses, AModuleThatIsGoneTakesItsVariablesAlong)
{
    m_access.asked_of_module(m_module, "a");
    m_access.forget_module(m_module);
    EXPECT_THAT(m_access.queries(), IsEmpty());
    m_access.asked_of_module(m_module, "a");
    EXPECT_EQ(m_access.count(), 2U) << "another module, at the same handle";
}

TEST_F(VariableAccesses, AHandleThatIsUsedAgainIsAnotherModules)
{
    m_access.module_made(m_module, Owner::library);
    m_access.module_made(m_module, Owner::program);
    EXPECT_FALSE(m_access.is_of_known_library(m_module));
    m_access.asked_of_module(m_module, "a");
    m_access.module_made(m_module, Owner::program);
    EXPECT_THAT(m_access.queries(), IsEmpty());
}

TEST_F(VariableAccesses, WhatIsAskedOfALibraryIsAskedOfItsModules)
{
    m_access.library_made(m_library, Owner::program);
    m_access.asked_of_library(m_library,
                              "a"); // CUDA's runtime queries managed variables in this way before any module is loaded
    EXPECT_THAT(m_access.queries(), ElementsAre(asked(nullptr, {"a"})));
    m_access.module_of_library(m_module, m_library);
    m_access.module_of_library(m_other, m_library); // the same library in another context
    m_access.asked_of_library(m_library, "b");
    EXPECT_THAT(m_access.queries(), UnorderedElementsAre(asked(m_module, {"a", "b"}), asked(m_other, {"a", "b"})));
    EXPECT_EQ(m_access.count(), 2U);
}

TEST_F(VariableAccesses, WhatKnownLibrariesAskOfTheirOwnIsTheirs)
{
    m_access.library_made(m_library, Owner::library);
    m_access.module_of_library(m_module, m_library);
    m_access.asked_of_library(m_library, "constants");
    EXPECT_TRUE(m_access.is_of_known_library(m_module));
    EXPECT_FALSE(m_access.is_of_known_library(m_other));
    EXPECT_THAT(m_access.queries(), IsEmpty());
    EXPECT_EQ(m_access.count(), 0U);
}

} // namespace
} // namespace warmgraph::backends::cuda::test::variable_access_test
