// The work of a node, or of a stream.
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
    bool is_packed = false;                                       ///< the launch passed its arguments as `extra`
    std::vector<std::byte> buffer;                                ///< the arguments at their offsets
    std::map<std::uint32_t, CUlaunchAttributeValue> attributes{}; // by CUlaunchAttributeID
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

/// Owned by the node's graph.
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

/// Reads the arguments of a launch. CUDA_ERROR_INVALID_VALUE for launches that the driver refuses: no function, no or
/// too large dimensions, more shared memory than the function may have, a buffer of another size.
[[nodiscard]] CUresult make_kernel(KernelWork& work, const CUDA_KERNEL_NODE_PARAMS& params);
[[nodiscard]] CUDA_MEMCPY3D linear_copy(CUdeviceptr to, CUdeviceptr from, std::size_t size);
/// Fails when the driver would refuse the sizes or kinds, or when the memory is not allocated.
[[nodiscard]] CUresult check(const CUDA_MEMCPY3D& copy);
[[nodiscard]] CUresult check(const CUDA_MEMSET_NODE_PARAMS& fill);

[[nodiscard]] CUresult make_batch(BatchWork& work, const CUDA_BATCH_MEM_OP_NODE_PARAMS& params);

/// Runs the batch. A wait that does not hold becomes the context's sticky error.
void run_batch(const BatchWork& work);
/// Runs the work at once. Access to unallocated memory becomes the context's sticky error, as on a device.
void run(const Work& work);

} // namespace fake_cuda
