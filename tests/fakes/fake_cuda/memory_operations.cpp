// Batches of memory operations: waits and writes of single words. All work is done at once. So if the condition of a
// wait is not true at once, it never becomes true: a device would hang, but the fake returns CUDA_ERROR_LAUNCH_TIMEOUT
// from then on.
#include "graphs.hpp"
#include "memory.hpp"
#include "streams.hpp"

namespace fake_cuda {
namespace {

constexpr unsigned k_most = 255; // the limit of cuStreamBatchMemOp, "must be less than 256"

bool is_64(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

bool is_wait(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

bool is_write(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

CUresult check(const CUstreamBatchMemOpParams& operation)
{
    const CUstreamBatchMemOpType type = operation.operation;
    if (!is_wait(type) && !is_write(type))
        return type == CU_STREAM_MEM_OP_BARRIER ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    const CUdeviceptr address = operation.waitValue.address; // a write has its address at the same place
    const std::size_t width = is_64(type) ? 8 : 4;
    return address % width == 0 && memory().holds(address, width) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool holds(std::uint64_t word, std::uint64_t value, unsigned flags, bool wide)
{
    const std::uint64_t difference = word - value;
    const bool is_negative = wide ? static_cast<std::int64_t>(difference) < 0
                                  : static_cast<std::int32_t>(static_cast<std::uint32_t>(difference)) < 0;
    const std::uint64_t mask = wide ? ~0ULL : 0xFFFF'FFFFULL;
    switch (flags & 3U) {
    case CU_STREAM_WAIT_VALUE_GEQ: return !is_negative;
    case CU_STREAM_WAIT_VALUE_EQ: return (difference & mask) == 0;
    case CU_STREAM_WAIT_VALUE_AND: return (word & value & mask) != 0;
    default: return (~(word | value) & mask) != 0;
    }
}

CUresult enqueue_one(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, std::uint64_t value,
                     unsigned flags)
{
    CUstreamBatchMemOpParams operation{};
    operation.waitValue.address = address;
    operation.waitValue.value64 = value;
    operation.waitValue.flags = flags;
    operation.operation = type;
    return cuStreamBatchMemOp(stream, 1, &operation, 0);
}

} // namespace

CUresult make_batch(BatchWork& work, const CUDA_BATCH_MEM_OP_NODE_PARAMS& params)
{
    if (params.ctx == nullptr || params.flags != 0 || params.count == 0 || params.count > k_most)
        return CUDA_ERROR_INVALID_VALUE;
    work.context = params.ctx;
    work.operations.assign(params.paramArray, params.paramArray + params.count);
    for (const auto& operation : work.operations) FAKE_CUDA_CHECK(check(operation));
    return CUDA_SUCCESS;
}

void run_batch(const BatchWork& work)
{
    for (const auto& operation : work.operations) {
        if (check(operation) != CUDA_SUCCESS) return set_sticky_error(CUDA_ERROR_ILLEGAL_ADDRESS);
        const bool wide = is_64(operation.operation);
        const std::size_t width = wide ? 8 : 4;
        if (is_write(operation.operation))
            std::memcpy(pointer_to<void>(operation.writeValue.address), &operation.writeValue.value64, width);
        if (!is_wait(operation.operation)) continue;
        std::uint64_t word = 0;
        std::memcpy(&word, pointer_to<void>(operation.waitValue.address), width);
        const std::uint64_t value = wide ? operation.waitValue.value64 : operation.waitValue.value;
        if (!holds(word, value, operation.waitValue.flags, wide)) return set_sticky_error(CUDA_ERROR_LAUNCH_TIMEOUT);
    }
}

} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS* params)
{
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    BatchWork work;
    FAKE_CUDA_CHECK(make_batch(work, *params));
    *node = add_node(graph, std::move(work), {dependencies, count});
    return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* params)
{
    auto* const work = work_of<BatchWork>(node);
    if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = {work->context, static_cast<unsigned>(work->operations.size()), work->operations.data(), 0};
    return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                            unsigned int flags)
{
    CUDA_BATCH_MEM_OP_NODE_PARAMS params{nullptr, count, operations, flags};
    FAKE_CUDA_CHECK(cuCtxGetCurrent(&params.ctx));
    BatchWork work;
    FAKE_CUDA_CHECK(make_batch(work, params));
    return enqueue(stream, std::move(work));
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return enqueue_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return enqueue_one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return enqueue_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return enqueue_one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}
