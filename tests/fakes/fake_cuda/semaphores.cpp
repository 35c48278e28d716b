// External semaphores: timelines on the host, which a test makes, sets and reads (fake_cuda.h). All work is done at
// once. If a wait's value is not reached, a device would hang; the fake returns CUDA_ERROR_LAUNCH_TIMEOUT from then on.
// It also does so after a signal that does not count upwards, which Vulkan forbids. So a repeated signal is noticed.
#include "semaphores.hpp"

#include <span>

#include "fake_cuda.h"
#include "faults.hpp"
#include "graphs.hpp"
#include "streams.hpp"

struct CUextSemaphore_st {
    unsigned long long value = 0;
};

namespace fake_cuda {
namespace {

Handles<CUextSemaphore_st>& semaphores()
{
    static Handles<CUextSemaphore_st> all;
    return all;
}

bool are_alive(std::span<const CUexternalSemaphore> handles)
{
    for (CUexternalSemaphore handle : handles) {
        if (!semaphores().has(handle)) return false;
    }
    return !handles.empty();
}

template <class Kind, class Params>
CUresult make(Kind& work, const CUexternalSemaphore* handles, const Params* params, unsigned count)
{
    if (handles == nullptr || params == nullptr || !are_alive({handles, count})) return CUDA_ERROR_INVALID_VALUE;
    work.handles.assign(handles, handles + count);
    work.params.assign(params, params + count);
    return CUDA_SUCCESS;
}

template <class Kind, class Node>
CUresult add(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count, const Node& params)
{
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    Kind work;
    FAKE_CUDA_CHECK(make(work, params.extSemArray, params.paramsArray, params.numExtSems));
    *node = add_node(graph, std::move(work), {dependencies, count});
    return CUDA_SUCCESS;
}

template <class Kind, class Node>
CUresult get(CUgraphNode node, Node* params)
{
    auto* const work = work_of<Kind>(node);
    if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = {work->handles.data(), work->params.data(), static_cast<unsigned>(work->handles.size())};
    return CUDA_SUCCESS;
}

template <class Kind, class Params>
CUresult enqueue_all(CUstream stream, const CUexternalSemaphore* handles, const Params* params, unsigned count)
{
    Kind work;
    FAKE_CUDA_CHECK(make(work, handles, params, count));
    return enqueue(stream, std::move(work));
}

} // namespace

CUresult change(SignalWork& work, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS& params)
{
    if (params.numExtSems != work.handles.size()) return CUDA_ERROR_INVALID_VALUE;
    return make(work, params.extSemArray, params.paramsArray, params.numExtSems);
}

CUresult change(SemaphoreWaitWork& work, const CUDA_EXT_SEM_WAIT_NODE_PARAMS& params)
{
    if (params.numExtSems != work.handles.size()) return CUDA_ERROR_INVALID_VALUE;
    return make(work, params.extSemArray, params.paramsArray, params.numExtSems);
}

void run_semaphores(const SignalWork& work)
{
    for (std::size_t i = 0; i < work.handles.size(); ++i) {
        const unsigned long long value = work.params[i].params.fence.value;
        if (!semaphores().has(work.handles[i])) return set_sticky_error(CUDA_ERROR_ILLEGAL_ADDRESS);
        if (value <= work.handles[i]->value) return set_sticky_error(CUDA_ERROR_LAUNCH_TIMEOUT);
        work.handles[i]->value = value;
    }
}

void run_semaphores(const SemaphoreWaitWork& work)
{
    for (std::size_t i = 0; i < work.handles.size(); ++i) {
        if (!semaphores().has(work.handles[i])) return set_sticky_error(CUDA_ERROR_ILLEGAL_ADDRESS);
        if (work.handles[i]->value < work.params[i].params.fence.value)
            return set_sticky_error(CUDA_ERROR_LAUNCH_TIMEOUT);
    }
}

} // namespace fake_cuda

using namespace fake_cuda;

FAKE_CUDA_EXPORT void* fake_cuda_make_semaphore(unsigned long long value)
{
    const std::scoped_lock lock(driver_mutex());
    return semaphores().add(std::make_unique<CUextSemaphore_st>(CUextSemaphore_st{value}));
}

FAKE_CUDA_EXPORT void fake_cuda_destroy_semaphore(void* semaphore)
{
    const std::scoped_lock lock(driver_mutex());
    semaphores().erase(static_cast<CUexternalSemaphore>(semaphore));
}

FAKE_CUDA_EXPORT unsigned long long fake_cuda_semaphore_value(void* semaphore)
{
    const std::scoped_lock lock(driver_mutex());
    return static_cast<CUexternalSemaphore>(semaphore)->value;
}

FAKE_CUDA_EXPORT void fake_cuda_set_semaphore(void* semaphore, unsigned long long value)
{
    const std::scoped_lock lock(driver_mutex());
    static_cast<CUexternalSemaphore>(semaphore)->value = value;
}

CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore* handles,
                                         const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* params, unsigned int count,
                                         CUstream stream)
{
    return enqueue_all<SignalWork>(stream, handles, params, count);
}

CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore* handles,
                                       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* params, unsigned int count,
                                       CUstream stream)
{
    return enqueue_all<SemaphoreWaitWork>(stream, handles, params, count);
}

CUresult cuGraphAddExternalSemaphoresSignalNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                                std::size_t count, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* params)
{
    return add<SignalWork>(node, graph, dependencies, count, *params);
}

CUresult cuGraphAddExternalSemaphoresWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                              std::size_t count, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* params)
{
    return add<SemaphoreWaitWork>(node, graph, dependencies, count, *params);
}

CUresult cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode node, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* params)
{
    return get<SignalWork>(node, params);
}

CUresult cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode node, CUDA_EXT_SEM_WAIT_NODE_PARAMS* params)
{
    return get<SemaphoreWaitWork>(node, params);
}
