#include "graph/nodes/memory_operations_node.hpp"

#include <span>

#include "graph/nodes/nodes.hpp"
#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends::cuda {
namespace {

using cachefmt::width_of;

constexpr auto number(MemoryOperationKind kind) noexcept { return static_cast<std::uint32_t>(kind); }

// Raw work uses the driver's numbers.
static_assert(number(MemoryOperationKind::wait_32) == CU_STREAM_MEM_OP_WAIT_VALUE_32);
static_assert(number(MemoryOperationKind::write_32) == CU_STREAM_MEM_OP_WRITE_VALUE_32);
static_assert(number(MemoryOperationKind::flush_remote_writes) == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES);
static_assert(number(MemoryOperationKind::wait_64) == CU_STREAM_MEM_OP_WAIT_VALUE_64);
static_assert(number(MemoryOperationKind::write_64) == CU_STREAM_MEM_OP_WRITE_VALUE_64);
static_assert(number(MemoryOperationKind::barrier) == CU_STREAM_MEM_OP_BARRIER);

CUstreamBatchMemOpParams native_operation(const RawMemoryOperation& operation) noexcept
{
    CUstreamBatchMemOpParams native{};
    const auto put = [&](auto& word) { // waits and writes have the same members
        word.address = operation.address.flat();
        if (width_of(operation.kind) == 4)
            word.value = static_cast<cuuint32_t>(operation.value);
        else
            word.value64 = operation.value;
        word.flags = operation.flags;
    };
    switch (operation.kind) {
    case MemoryOperationKind::wait_32:
    case MemoryOperationKind::wait_64: put(native.waitValue); break;
    case MemoryOperationKind::write_32:
    case MemoryOperationKind::write_64: put(native.writeValue); break;
    case MemoryOperationKind::barrier: native.memoryBarrier.flags = operation.flags; break;
    case MemoryOperationKind::flush_remote_writes: native.flushRemoteWrites.flags = operation.flags; break;
    }
    native.operation = static_cast<CUstreamBatchMemOpType>(number(operation.kind));
    return native;
}

/// The upper half of a 32-bit value is undefined, so it is dropped.
template <class Word>
RawMemoryOperation of_word(MemoryOperationKind kind, const Word& word) noexcept
{
    return {kind, Address::from_flat(word.address), width_of(kind) == 4 ? word.value : word.value64, word.flags};
}

Result<RawMemoryOperation> from_native(const CUstreamBatchMemOpParams& native)
{
    using enum MemoryOperationKind;
    switch (native.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: return of_word(wait_32, native.waitValue);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return of_word(wait_64, native.waitValue);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return of_word(write_32, native.writeValue);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return of_word(write_64, native.writeValue);
    case CU_STREAM_MEM_OP_BARRIER: return RawMemoryOperation{barrier, {}, 0, native.memoryBarrier.flags};
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return RawMemoryOperation{flush_remote_writes, {}, 0, native.flushRemoteWrites.flags};
    default: break;
    }
    return fail(ErrorCode::not_recordable,
                "its kind {} is not known to this version of warmgraph, expected waits, writes, barriers or flushes; "
                "do it in a kernel, or before and after the captured work",
                static_cast<int>(native.operation));
}

} // namespace

const CUDA_BATCH_MEM_OP_NODE_PARAMS& NativeOperations::fill(const Core& core, const RawMemoryOperations& work)
{
    m_operations.clear();
    for (const RawMemoryOperation& operation : work.operations) m_operations.push_back(native_operation(operation));
    m_params = {core.context, static_cast<unsigned int>(m_operations.size()), m_operations.data(), 0};
    return m_params;
}

Result<void> check_operations(const RawMemoryOperations& work)
{
    if (work.operations.empty())
        return fail(ErrorCode::invalid_argument, "a batch of memory operations is empty, expected at least one");
    for (std::size_t i = 0; i < work.operations.size(); ++i) {
        const RawMemoryOperation& operation = work.operations[i];
        const std::uint32_t width = width_of(operation.kind);
        if (width != 0 && (operation.address.is_null() || operation.address.flat() % width != 0))
            return fail(ErrorCode::invalid_argument,
                        "memory operation {}: a word of {} bytes at {:#x}, expected an address that is a multiple of "
                        "the word's size: bind memory of that alignment",
                        i, width, operation.address.flat());
    }
    return {};
}

Result<RawWork> read_operations(const Core& core, CUgraphNode node)
{
    const Driver& driver = *core.driver;
    if (driver.cuGraphBatchMemOpNodeGetParams == nullptr)
        return fail(ErrorCode::not_recordable, "{}",
                    no_operations(driver, "cuGraphBatchMemOpNodeGetParams").error().message);
    CUDA_BATCH_MEM_OP_NODE_PARAMS native{};
    auto got = driver.call("cuGraphBatchMemOpNodeGetParams", driver.cuGraphBatchMemOpNodeGetParams, node, &native);
    if (!got) return std::unexpected(got.error());
    if (native.ctx != nullptr && native.ctx != core.context)
        return fail(ErrorCode::not_recordable,
                    "it runs in another context than the device's primary one; capture with the primary context");
    if (native.flags != 0)
        return fail(ErrorCode::not_recordable,
                    "it has flags {:#x}, expected 0: other flags are not known to this version of warmgraph",
                    native.flags);
    if (native.count == 0) return RawEmpty{};
    if (native.paramArray == nullptr)
        return fail(ErrorCode::driver_failed, "the driver gives no parameters of {} operations", native.count);
    RawMemoryOperations work;
    work.operations.reserve(native.count);
    for (const CUstreamBatchMemOpParams& item : std::span(native.paramArray, native.count)) {
        auto operation = from_native(item);
        if (!operation) return within(fmt::format("operation {}", work.operations.size()), operation.error());
        work.operations.push_back(*operation);
    }
    return work;
}

Result<void> add(AddCall& call, const RawMemoryOperations& work)
{
    const Driver& driver = *call.core.driver;
    if (driver.cuGraphAddBatchMemOpNode == nullptr) return no_operations(driver, "cuGraphAddBatchMemOpNode");
    if (auto checked = check_operations(work); !checked) return checked;
    return call("cuGraphAddBatchMemOpNode", driver.cuGraphAddBatchMemOpNode,
                &call.buffers.operations.fill(call.core, work));
}

Result<void> change(const ChangeCall& call, RawMemoryOperations& before, const RawMemoryOperations& after)
{
    if (before == after) return {};
    const Driver& driver = *call.core.driver;
    if (auto checked = check_update(before, after); !checked) return checked;
    if (auto checked = check_operations(after); !checked) return checked;
    if (driver.cuGraphExecBatchMemOpNodeSetParams == nullptr)
        return no_operations(driver, "cuGraphExecBatchMemOpNodeSetParams");
    auto set =
        changed_or_unsupported(call("cuGraphExecBatchMemOpNodeSetParams", driver.cuGraphExecBatchMemOpNodeSetParams,
                                    &call.buffers.operations.fill(call.core, after)));
    if (set) before = after; // same size, so this allocates nothing
    return set;
}

std::unexpected<Error> no_operations(const Driver& driver, const char* entry)
{
    return fail(ErrorCode::unsupported,
                "the CUDA driver (version {}.{}) has no {}, which memory operations need: update the driver, or do the "
                "operations in a kernel",
                driver.version / 1000, driver.version % 1000 / 10, entry);
}

} // namespace warmgraph::backends::cuda
