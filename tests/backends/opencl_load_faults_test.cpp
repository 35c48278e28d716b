// Building a stored image fails. Some failures mean that the image is useless, others do not. The loader is a fake
// whose clBuildProgram fails on request (tests/fakes/faulty_opencl).
#define CL_TARGET_OPENCL_VERSION 300
#include <cstdlib>

#include <CL/cl.h>

#include "expect_error.hpp"
#include "faulty_opencl/faulty_opencl.hpp"
#include "opencl_environment.hpp"
#include "opencl_program.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/opencl.hpp"

namespace warmgraph::backends::test::opencl_load_faults_test {
namespace {

TEST(OpenclLoadFaults, SayWhetherTheImageIsToBlame)
{
    ASSERT_TRUE(k_has_own_pocl_cache);
    ::setenv("WARMGRAPH_OPENCL", WARMGRAPH_FAULTY_OPENCL, 1);
    const auto device = take(make_opencl_backend()->open(""));
    const auto module = take(device->compiler().compile(k_opencl_program, ""));
    const auto image = take(module->image());

    struct Case {
        cl_int status;
        ErrorCode code;
        const char* name;
    };
    for (const Case& each :
         {Case{CL_BUILD_PROGRAM_FAILURE, ErrorCode::stale, "CL_BUILD_PROGRAM_FAILURE"},
          Case{CL_LINK_PROGRAM_FAILURE, ErrorCode::stale, "CL_LINK_PROGRAM_FAILURE"},
          Case{CL_INVALID_BINARY, ErrorCode::stale, "CL_INVALID_BINARY"},
          Case{CL_OUT_OF_HOST_MEMORY, ErrorCode::out_of_memory, "CL_OUT_OF_HOST_MEMORY"},
          Case{CL_OUT_OF_RESOURCES, ErrorCode::out_of_memory, "CL_OUT_OF_RESOURCES"},
          Case{CL_MEM_OBJECT_ALLOCATION_FAILURE, ErrorCode::out_of_memory, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
          Case{CL_COMPILER_NOT_AVAILABLE, ErrorCode::unsupported, "CL_COMPILER_NOT_AVAILABLE"},
          Case{CL_LINKER_NOT_AVAILABLE, ErrorCode::unsupported, "CL_LINKER_NOT_AVAILABLE"},
          Case{CL_INVALID_OPERATION, ErrorCode::driver_failed, "CL_INVALID_OPERATION"}}) {
        warmgraph_next_build_gives = each.status;
        EXPECT_TRUE(failed_with(device->load(image), each.code, each.name));
        EXPECT_EQ(warmgraph_next_build_gives, CL_SUCCESS) << "the driver was asked";
        EXPECT_TRUE(succeeded(device->load(image))) << "the image is as good as before";
    }
}

} // namespace
} // namespace warmgraph::backends::test::opencl_load_faults_test
