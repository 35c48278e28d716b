// External semaphore nodes: work outside the graph, of another API mostly, waits for the graph's and the graph for it.
#pragma once

#include <vector>

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// The driver's structures, and what they point at.
class NativeSemaphores {
public:
    /// Room for a node's semaphores, so that filling allocates nothing.
    void reserve(std::size_t semaphores);
    /// Valid until the next one.
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS& signal(const RawSemaphores& work);
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS& wait(const RawSemaphores& work);

private:
    std::vector<CUexternalSemaphore> m_handles;
    std::vector<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> m_signals;
    std::vector<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> m_waits;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS m_signal{};
    CUDA_EXT_SEM_WAIT_NODE_PARAMS m_wait{};
};

/// invalid_argument: no semaphore, or a null one.
[[nodiscard]] Result<void> check_semaphores(const RawSemaphores& work);

/// RawSemaphores. not_recordable: a fence of NvSciSync, a keyed mutex, flags that are unknown here.
[[nodiscard]] Result<RawWork> read_signal(const Driver& driver, CUgraphNode node);
[[nodiscard]] Result<RawWork> read_wait(const Driver& driver, CUgraphNode node);

[[nodiscard]] Result<void> add(AddCall& call, const RawSemaphores& work);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawSemaphores& before, const RawSemaphores& after);

/// unsupported: an older driver without this entry point.
[[nodiscard]] std::unexpected<Error> no_semaphores(const Driver& driver, const char* entry);

} // namespace warmgraph::backends::cuda
