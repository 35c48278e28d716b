// Driver functions that enqueue work: a stream runs the work, or captures it.
#include "graphs.hpp"
#include "memory.hpp"
#include "modules.hpp"
#include "streams.hpp"

namespace fake_cuda {
namespace {

CUresult fill(CUdeviceptr start, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
              std::size_t height, CUstream stream)
{
    const CUDA_MEMSET_NODE_PARAMS params{start, height > 1 ? pitch : 0, value, element, width, height};
    FAKE_CUDA_CHECK(check(params));
    return enqueue(stream, FillWork{params});
}

} // namespace
} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream)
{
    const CUDA_MEMCPY3D copy = linear_copy(to, from, size);
    FAKE_CUDA_CHECK(check(copy));
    return enqueue(stream, CopyWork{copy});
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream)
{
    FAKE_CUDA_CHECK(check(*copy));
    return enqueue(stream, CopyWork{*copy});
}

CUresult cuMemsetD8Async(CUdeviceptr start, unsigned char value, std::size_t count, CUstream stream)
{
    return fill(start, 0, value, 1, count, 1, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr start, unsigned short value, std::size_t count, CUstream stream)
{
    return fill(start, 0, value, 2, count, 1, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr start, unsigned int value, std::size_t count, CUstream stream)
{
    return fill(start, 0, value, 4, count, 1, stream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr start, std::size_t pitch, unsigned char value, std::size_t width,
                           std::size_t height, CUstream stream)
{
    return fill(start, pitch, value, 1, width, height, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr start, std::size_t pitch, unsigned short value, std::size_t width,
                            std::size_t height, CUstream stream)
{
    return fill(start, pitch, value, 2, width, height, stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr start, std::size_t pitch, unsigned int value, std::size_t width,
                            std::size_t height, CUstream stream)
{
    return fill(start, pitch, value, 4, width, height, stream);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data)
{
    return enqueue(stream, HostWork{{function, data}});
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                        CUstream stream, void** arguments, void** extra)
{
    CUlaunchConfig config{};
    config.gridDimX = grid_x, config.gridDimY = grid_y, config.gridDimZ = grid_z;
    config.blockDimX = block_x, config.blockDimY = block_y, config.blockDimZ = block_z;
    config.sharedMemBytes = shared;
    config.hStream = stream;
    return cuLaunchKernelEx(&config, function, arguments, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra)
{
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function;
    params.gridDimX = config->gridDimX, params.gridDimY = config->gridDimY, params.gridDimZ = config->gridDimZ;
    params.blockDimX = config->blockDimX, params.blockDimY = config->blockDimY, params.blockDimZ = config->blockDimZ;
    params.sharedMemBytes = config->sharedMemBytes;
    params.kernelParams = arguments;
    params.extra = extra;
    KernelWork work;
    FAKE_CUDA_CHECK(make_kernel(work, params));
    bool is_programmatic = false; // in a graph this is the type of the edge, and not an attribute
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config->attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            is_programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
        else if (attribute.id != CU_LAUNCH_ATTRIBUTE_IGNORE)
            work.attributes[attribute.id] = attribute.value;
    }
    const bool captured = is_capturing(config->hStream);
    const auto before = captured ? config->hStream->frontier : std::vector<CUgraphNode>{};
    FAKE_CUDA_CHECK(enqueue(config->hStream, std::move(work)));
    if (!captured || !is_programmatic || before.size() != 1 || work_of<KernelWork>(before[0]) == nullptr)
        return CUDA_SUCCESS;
    config->hStream->capture->graph->edges.back().data = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
    return CUDA_SUCCESS;
}
