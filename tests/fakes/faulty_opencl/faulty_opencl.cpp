#include "faulty_opencl/faulty_opencl.hpp"

#define CL_TARGET_OPENCL_VERSION 300
#include <utility>

#include <CL/cl.h>

#include <dlfcn.h>

__attribute__((visibility("default"))) int warmgraph_next_build_gives = CL_SUCCESS;

extern "C" __attribute__((visibility("default"))) cl_int clBuildProgram(cl_program program, cl_uint count,
                                                                        const cl_device_id* devices,
                                                                        const char* options,
                                                                        void (*notify)(cl_program, void*), void* user)
{
    if (warmgraph_next_build_gives != CL_SUCCESS) return std::exchange(warmgraph_next_build_gives, CL_SUCCESS);
    static const auto systems =
        reinterpret_cast<decltype(&clBuildProgram)>(::dlsym(::dlopen("libOpenCL.so.1", RTLD_NOW), "clBuildProgram"));
    return systems(program, count, devices, options, notify, user);
}
