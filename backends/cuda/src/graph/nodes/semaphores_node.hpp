// External semaphore nodes: the graph waits for work outside it (mostly of another API), or lets such work continue.
#pragma once

#include <vector>

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// The driver's structures and the arrays that they point to.
class NativeSemaphores {
public:
    /// Makes room for a node's semaphores, so that filling allocates nothing.
    void reserve(std::size_t semaphores);
    /// The result is valid until the next call.
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS& signal(const RawSemaphores& work);
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS& wait(const RawSemaphores& work);

private:
    std::vector<CUexternalSemaphore> m_handles;
    std::vector<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> m_signals;
    std::vector<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> m_waits;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS m_signal{};
    CUDA_EXT_SEM_WAIT_NODE_PARAMS m_wait{};
};

/// invalid_argument: there is no semaphore, or a semaphore is null.
[[nodiscard]] Result<void> check_semaphores(const RawSemaphores& work);

/// Return RawSemaphores. not_recordable: a fence of NvSciSync, a keyed mutex, unknown flags.
[[nodiscard]] Result<RawWork> read_signal(const Driver& driver, CUgraphNode node);
[[nodiscard]] Result<RawWork> read_wait(const Driver& driver, CUgraphNode node);

[[nodiscard]] Result<void> add(AddCall& call, const RawSemaphores& work);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawSemaphores& before, const RawSemaphores& after);

/// The error for a driver without this function: unsupported.
[[nodiscard]] std::unexpected<Error> no_semaphores(const Driver& driver, const char* entry);

} // namespace warmgraph::backends::cuda
