// The work that a node or a stream does.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include <cuda.h>

namespace fake_cuda {

struct EmptyWork {};

struct KernelWork {
    CUfunction function = nullptr;
    std::array<unsigned, 3> grid{}, block{};
    unsigned shared = 0;
    bool is_packed = false;                                       ///< whether the launch had its arguments in `extra`
    std::vector<std::byte> buffer;                                ///< this buffer, with each argument at its offset
    std::map<std::uint32_t, CUlaunchAttributeValue> attributes{}; // the launch attributes by their CUlaunchAttributeID
};

struct CopyWork {
    CUDA_MEMCPY3D params{};
};

struct FillWork {
    CUDA_MEMSET_NODE_PARAMS params{};
};

struct RecordWork {
    CUevent event = nullptr;
};

struct WaitWork {
    CUevent event = nullptr;
};

struct HostWork {
    CUDA_HOST_NODE_PARAMS params{};
};

/// A child graph. The graph of the node owns it.
struct ChildWork {
    CUgraph graph = nullptr;
};

struct AllocateWork {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
};

struct FreeWork {
    CUdeviceptr address = 0;
};

struct BatchWork {
    CUcontext context = nullptr;
    std::vector<CUstreamBatchMemOpParams> operations{};
};

struct SignalWork {
    std::vector<CUexternalSemaphore> handles{};
    std::vector<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> params{};
};

struct SemaphoreWaitWork {
    std::vector<CUexternalSemaphore> handles{};
    std::vector<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> params{};
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, RecordWork, WaitWork, HostWork, ChildWork,
                          AllocateWork, FreeWork, BatchWork, SignalWork, SemaphoreWaitWork>;

/// Reads the arguments of a launch. Returns CUDA_ERROR_INVALID_VALUE for a launch that the driver refuses: without a
/// function, with dimensions that are zero or too large, with more shared memory than the function may have, or with a
/// buffer of another size.
[[nodiscard]] CUresult make_kernel(KernelWork& work, const CUDA_KERNEL_NODE_PARAMS& params);
[[nodiscard]] CUDA_MEMCPY3D linear_copy(CUdeviceptr to, CUdeviceptr from, std::size_t size);
/// Checks a copy. Fails when the driver would refuse its sizes or kinds, or when its memory is not allocated.
[[nodiscard]] CUresult check(const CUDA_MEMCPY3D& copy);
[[nodiscard]] CUresult check(const CUDA_MEMSET_NODE_PARAMS& fill);

[[nodiscard]] CUresult make_batch(BatchWork& work, const CUDA_BATCH_MEM_OP_NODE_PARAMS& params);

/// Runs a batch of memory operations. If a wait's condition is not true, this becomes the sticky error of the context.
void run_batch(const BatchWork& work);
/// Runs the work at once. As on a device, an access to unallocated memory becomes the sticky error of the context.
void run(const Work& work);

} // namespace fake_cuda
