// Batch memory operation nodes: waits and writes of single words (cuStreamWaitValue32, cuStreamWriteValue64 ...).
#pragma once

#include <vector>

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// The driver's structure and the arrays that it points to.
class NativeOperations {
public:
    /// Makes room for a batch, so that fill() allocates nothing.
    void reserve(std::size_t operations) { m_operations.reserve(operations); }
    /// The result is valid until the next fill().
    const CUDA_BATCH_MEM_OP_NODE_PARAMS& fill(const Core& core, const RawMemoryOperations& work);

private:
    std::vector<CUstreamBatchMemOpParams> m_operations;
    CUDA_BATCH_MEM_OP_NODE_PARAMS m_params{};
};

/// invalid_argument: no operations, or an unaligned word, which the driver would report only at the launch.
[[nodiscard]] Result<void> check_operations(const RawMemoryOperations& work);

/// Returns RawMemoryOperations. not_recordable: an operation of an unknown kind, or of another context.
[[nodiscard]] Result<RawWork> read_operations(const Core& core, CUgraphNode node);

[[nodiscard]] Result<void> add(AddCall& call, const RawMemoryOperations& work);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawMemoryOperations& before,
                                  const RawMemoryOperations& after);

/// The error for a driver without this function: unsupported.
[[nodiscard]] std::unexpected<Error> no_operations(const Driver& driver, const char* entry);

} // namespace warmgraph::backends::cuda
