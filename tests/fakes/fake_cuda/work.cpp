#include "work.hpp"

#include "graphs.hpp"
#include "memory.hpp"
#include "modules.hpp"
#include "semaphores.hpp"

namespace fake_cuda {
namespace {

/// One side of a copy (source or destination).
struct Box {
    CUdeviceptr start = 0;
    std::size_t row = 0, slice = 0; ///< distances in bytes from one row to the next, and from one slice to the next
};

Box source_of(const CUDA_MEMCPY3D& copy)
{
    const std::size_t row = copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes;
    const std::size_t slice = row * (copy.srcHeight != 0 ? copy.srcHeight : copy.Height);
    const CUdeviceptr start = copy.srcMemoryType == CU_MEMORYTYPE_HOST ? address_of(copy.srcHost) : copy.srcDevice;
    return {start + copy.srcZ * slice + copy.srcY * row + copy.srcXInBytes, row, slice};
}

Box destination_of(const CUDA_MEMCPY3D& copy)
{
    const std::size_t row = copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes;
    const std::size_t slice = row * (copy.dstHeight != 0 ? copy.dstHeight : copy.Height);
    const CUdeviceptr start = copy.dstMemoryType == CU_MEMORYTYPE_HOST ? address_of(copy.dstHost) : copy.dstDevice;
    return {start + copy.dstZ * slice + copy.dstY * row + copy.dstXInBytes, row, slice};
}

bool is_empty(const CUDA_MEMCPY3D& copy) { return copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0; }

std::size_t extent(const CUDA_MEMCPY3D& copy, const Box& box)
{
    return (copy.Depth - 1) * box.slice + (copy.Height - 1) * box.row + copy.WidthInBytes;
}

std::size_t extent(const CUDA_MEMSET_NODE_PARAMS& fill)
{
    return (fill.height > 1 ? (fill.height - 1) * fill.pitch : 0) + fill.width * fill.elementSize;
}

bool is_linear(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
}

void run_kernel(const KernelWork& work)
{
    if (work.function->bulk) return work.function->bulk(work.grid, work.block, work.buffer.data());
    Arguments arguments;
    arguments.items = 1;
    for (const auto& dimensions : {work.grid, work.block}) {
        for (const unsigned count : dimensions) arguments.items *= count;
    }
    for (const auto& [kind, offset, size] : work.function->arguments) {
        if (kind == ArgumentKind::memory)
            std::memcpy(&arguments.memory.emplace_back(), work.buffer.data() + offset, size);
        else
            std::memcpy(&arguments.values.emplace_back(), work.buffer.data() + offset, size);
    }
    if (!work.function->kernel->run(arguments)) set_sticky_error(CUDA_ERROR_ILLEGAL_ADDRESS);
}

void run_copy(const CUDA_MEMCPY3D& copy)
{
    if (is_empty(copy)) return;
    if (check(copy) != CUDA_SUCCESS) return set_sticky_error(CUDA_ERROR_ILLEGAL_ADDRESS);
    const Box from = source_of(copy), to = destination_of(copy);
    for (std::size_t z = 0; z < copy.Depth; ++z) {
        for (std::size_t y = 0; y < copy.Height; ++y) {
            std::memmove(pointer_to<void>(to.start + z * to.slice + y * to.row),
                         pointer_to<void>(from.start + z * from.slice + y * from.row), copy.WidthInBytes);
        }
    }
}

void run_fill(const CUDA_MEMSET_NODE_PARAMS& fill)
{
    if (check(fill) != CUDA_SUCCESS) return set_sticky_error(CUDA_ERROR_ILLEGAL_ADDRESS);
    for (std::size_t y = 0; y < fill.height; ++y) {
        auto* at = pointer_to<std::byte>(fill.dst + y * fill.pitch);
        for (std::size_t x = 0; x < fill.width; ++x, at += fill.elementSize)
            std::memcpy(at, &fill.value, fill.elementSize);
    }
}

CUresult take_arguments(KernelWork& work, const CUDA_KERNEL_NODE_PARAMS& params)
{
    const CUfunc_st& function = *params.func;
    work.buffer.assign(function.buffer_size(), {});
    if (params.extra != nullptr) {
        work.is_packed = true;
        const void* bytes = nullptr;
        std::size_t size = 0;
        for (void** item = params.extra; *item != CU_LAUNCH_PARAM_END; item += 2) {
            if (item[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) bytes = item[1];
            if (item[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const std::size_t*>(item[1]);
        }
        if (params.kernelParams != nullptr || bytes == nullptr || size < work.buffer.size())
            return CUDA_ERROR_INVALID_VALUE;
        work.buffer.resize(size);
        std::memcpy(work.buffer.data(), bytes, size);
        return CUDA_SUCCESS;
    }
    if (params.kernelParams == nullptr && !function.arguments.empty()) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < function.arguments.size(); ++i) {
        const auto& argument = function.arguments[i];
        std::memcpy(work.buffer.data() + argument.offset, params.kernelParams[i], argument.size);
    }
    return CUDA_SUCCESS;
}

} // namespace

CUresult make_kernel(KernelWork& work, const CUDA_KERNEL_NODE_PARAMS& params)
{
    if (!is_function(params.func)) return CUDA_ERROR_INVALID_HANDLE;
    work.function = params.func;
    work.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
    work.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
    work.shared = params.sharedMemBytes;
    for (const auto& dimensions : {work.grid, work.block}) {
        for (const unsigned count : dimensions) {
            if (count == 0) return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (std::size_t{work.block[0]} * work.block[1] * work.block[2] > k_max_block) return CUDA_ERROR_INVALID_VALUE;
    const int limit = params.func->attributes.at(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (work.shared > static_cast<unsigned>(limit)) return CUDA_ERROR_INVALID_VALUE;
    return take_arguments(work, params);
}

CUDA_MEMCPY3D linear_copy(CUdeviceptr to, CUdeviceptr from, std::size_t size)
{
    const auto on_host = [](CUdeviceptr address) {
        const Allocation* const found = memory().around(address);
        return found == nullptr || is_host(*found);
    };
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = on_host(from) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = on_host(to) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.srcHost = on_host(from) ? pointer_to<void>(from) : nullptr;
    copy.srcDevice = on_host(from) ? 0 : from;
    copy.dstHost = on_host(to) ? pointer_to<void>(to) : nullptr;
    copy.dstDevice = on_host(to) ? 0 : to;
    copy.WidthInBytes = size;
    copy.srcPitch = copy.dstPitch = size;
    copy.Height = copy.Depth = copy.srcHeight = copy.dstHeight = 1;
    return copy;
}

CUresult check(const CUDA_MEMCPY3D& copy)
{
    if (!is_linear(copy.srcMemoryType) || !is_linear(copy.dstMemoryType)) return CUDA_ERROR_INVALID_VALUE;
    if (is_empty(copy)) return CUDA_SUCCESS;
    const Box from = source_of(copy), to = destination_of(copy);
    if (from.row < copy.WidthInBytes || to.row < copy.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
    const bool held = memory().holds(from.start, extent(copy, from)) && memory().holds(to.start, extent(copy, to));
    return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check(const CUDA_MEMSET_NODE_PARAMS& fill)
{
    const unsigned size = fill.elementSize;
    if ((size != 1 && size != 2 && size != 4) || fill.width == 0 || fill.height == 0 || fill.dst % size != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (fill.height > 1 && fill.pitch < fill.width * size) return CUDA_ERROR_INVALID_VALUE;
    return memory().rest(fill.dst).size() >= extent(fill) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void run(const Work& work)
{
    if (const auto* kernel = std::get_if<KernelWork>(&work)) return run_kernel(*kernel);
    if (const auto* copy = std::get_if<CopyWork>(&work)) return run_copy(copy->params);
    if (const auto* fill = std::get_if<FillWork>(&work)) return run_fill(fill->params);
    if (const auto* host = std::get_if<HostWork>(&work)) return host->params.fn(host->params.userData);
    if (const auto* batch = std::get_if<BatchWork>(&work)) return run_batch(*batch);
    if (const auto* signal = std::get_if<SignalWork>(&work)) return run_semaphores(*signal);
    if (const auto* wait = std::get_if<SemaphoreWaitWork>(&work)) return run_semaphores(*wait);
    if (const auto* child = std::get_if<ChildWork>(&work)) {
        for (CUgraphNode node : in_order(*child->graph)) run(node->work);
    }
    // Events, and memory that a graph allocates and frees, have no effect here, because all work is done at once.
}

} // namespace fake_cuda
