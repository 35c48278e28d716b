#include "graph/nodes/semaphores_node.hpp"

#include <span>

#include "graph/nodes/nodes.hpp"
#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends::cuda {
namespace {

CUexternalSemaphore handle_of(std::uint64_t handle) noexcept
{
    return reinterpret_cast<CUexternalSemaphore>(static_cast<std::uintptr_t>(handle)); // NOLINT: a handle
}

/// Makes signal or wait parameters, which have the same members, except a mutex's time limit.
template <class Params>
Params to_params(const RawSemaphore& use) noexcept
{
    Params native{};
    native.params.fence.value = use.value;
    native.flags = use.flags;
    return native;
}

template <class Params, class Node>
void fill(const RawSemaphores& work, std::vector<CUexternalSemaphore>& handles, std::vector<Params>& params, Node& node)
{
    handles.clear();
    params.clear();
    for (const RawSemaphore& use : work.uses) {
        handles.push_back(handle_of(use.semaphore));
        params.push_back(to_params<Params>(use));
    }
    node = {handles.data(), params.data(), static_cast<unsigned int>(handles.size())};
}

/// Refuses all parameters except fence values, because only those can be recreated in another process.
Result<void> check_plain(const void* sci_fence, std::uint64_t mutex_key, std::uint64_t mutex_limit, unsigned flags,
                         unsigned known_flags)
{
    if (sci_fence != nullptr)
        return fail(ErrorCode::not_recordable,
                    "it has an NvSciSync fence, which exists only in this process; use a timeline semaphore, or signal "
                    "and wait in the stream, before and after the captured work");
    if (mutex_key != 0 || mutex_limit != 0)
        return fail(ErrorCode::not_recordable,
                    "it has a keyed mutex (key {}, {} ms), expected only a fence value; acquire and release the mutex "
                    "in the stream, before and after the captured work",
                    mutex_key, mutex_limit);
    if ((flags & ~known_flags) != 0)
        return fail(
            ErrorCode::not_recordable,
            "it has flags {:#x}, expected at most {:#x}: other flags are not known to this version of warmgraph", flags,
            known_flags);
    return {};
}

Result<void> check_plain(const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS& native)
{
    return check_plain(native.params.nvSciSync.fence, native.params.keyedMutex.key, 0, native.flags,
                       CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC);
}

Result<void> check_plain(const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS& native)
{
    return check_plain(native.params.nvSciSync.fence, native.params.keyedMutex.key, native.params.keyedMutex.timeoutMs,
                       native.flags, CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC);
}

template <class Node>
Result<RawWork> read(const Driver& driver, SemaphoreAction action, const char* name,
                     CUresult (*get)(CUgraphNode, Node*), CUgraphNode node)
{
    if (get == nullptr) return fail(ErrorCode::not_recordable, "{}", no_semaphores(driver, name).error().message);
    Node native{};
    if (auto got = driver.call(name, get, node, &native); !got) return std::unexpected(got.error());
    if (native.numExtSems == 0) return RawEmpty{};
    if (native.extSemArray == nullptr || native.paramsArray == nullptr)
        return fail(ErrorCode::driver_failed, "the driver gives no parameters of {} semaphores", native.numExtSems);
    RawSemaphores work{action, {}};
    work.uses.reserve(native.numExtSems);
    for (std::size_t i = 0; i < native.numExtSems; ++i) {
        const auto& params = native.paramsArray[i];
        if (auto checked = check_plain(params); !checked)
            return within(fmt::format("semaphore {}", i), checked.error());
        work.uses.push_back(
            {reinterpret_cast<std::uintptr_t>(native.extSemArray[i]), params.params.fence.value, params.flags});
    }
    return work;
}

Result<void> add_signal(AddCall& call, const RawSemaphores& work)
{
    const Driver& driver = *call.core.driver;
    if (driver.cuGraphAddExternalSemaphoresSignalNode == nullptr)
        return no_semaphores(driver, "cuGraphAddExternalSemaphoresSignalNode");
    return call("cuGraphAddExternalSemaphoresSignalNode", driver.cuGraphAddExternalSemaphoresSignalNode,
                &call.buffers.semaphores.signal(work));
}

Result<void> add_wait(AddCall& call, const RawSemaphores& work)
{
    const Driver& driver = *call.core.driver;
    if (driver.cuGraphAddExternalSemaphoresWaitNode == nullptr)
        return no_semaphores(driver, "cuGraphAddExternalSemaphoresWaitNode");
    return call("cuGraphAddExternalSemaphoresWaitNode", driver.cuGraphAddExternalSemaphoresWaitNode,
                &call.buffers.semaphores.wait(work));
}

Result<void> set_signal(const ChangeCall& call, const RawSemaphores& work)
{
    const Driver& driver = *call.core.driver;
    if (driver.cuGraphExecExternalSemaphoresSignalNodeSetParams == nullptr)
        return no_semaphores(driver, "cuGraphExecExternalSemaphoresSignalNodeSetParams");
    return call("cuGraphExecExternalSemaphoresSignalNodeSetParams",
                driver.cuGraphExecExternalSemaphoresSignalNodeSetParams, &call.buffers.semaphores.signal(work));
}

Result<void> set_wait(const ChangeCall& call, const RawSemaphores& work)
{
    const Driver& driver = *call.core.driver;
    if (driver.cuGraphExecExternalSemaphoresWaitNodeSetParams == nullptr)
        return no_semaphores(driver, "cuGraphExecExternalSemaphoresWaitNodeSetParams");
    return call("cuGraphExecExternalSemaphoresWaitNodeSetParams", driver.cuGraphExecExternalSemaphoresWaitNodeSetParams,
                &call.buffers.semaphores.wait(work));
}

} // namespace

void NativeSemaphores::reserve(std::size_t semaphores)
{
    m_handles.reserve(semaphores);
    m_signals.reserve(semaphores);
    m_waits.reserve(semaphores);
}

const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS& NativeSemaphores::signal(const RawSemaphores& work)
{
    fill(work, m_handles, m_signals, m_signal);
    return m_signal;
}

const CUDA_EXT_SEM_WAIT_NODE_PARAMS& NativeSemaphores::wait(const RawSemaphores& work)
{
    fill(work, m_handles, m_waits, m_wait);
    return m_wait;
}

Result<void> check_semaphores(const RawSemaphores& work)
{
    if (work.uses.empty()) return fail(ErrorCode::invalid_argument, "a node has no semaphores, expected at least one");
    for (std::size_t i = 0; i < work.uses.size(); ++i)
        if (work.uses[i].semaphore == 0)
            return fail(ErrorCode::invalid_argument, "semaphore {} is null, expected a CUexternalSemaphore", i);
    return {};
}

Result<RawWork> read_signal(const Driver& driver, CUgraphNode node)
{
    return read(driver, SemaphoreAction::signal, "cuGraphExternalSemaphoresSignalNodeGetParams",
                driver.cuGraphExternalSemaphoresSignalNodeGetParams, node);
}

Result<RawWork> read_wait(const Driver& driver, CUgraphNode node)
{
    return read(driver, SemaphoreAction::wait, "cuGraphExternalSemaphoresWaitNodeGetParams",
                driver.cuGraphExternalSemaphoresWaitNodeGetParams, node);
}

Result<void> add(AddCall& call, const RawSemaphores& work)
{
    if (auto checked = check_semaphores(work); !checked) return checked;
    return work.action == SemaphoreAction::signal ? add_signal(call, work) : add_wait(call, work);
}

Result<void> change(const ChangeCall& call, RawSemaphores& before, const RawSemaphores& after)
{
    if (before == after) return {};
    if (auto checked = check_update(before, after); !checked) return checked;
    if (auto checked = check_semaphores(after); !checked) return checked;
    auto set = changed_or_unsupported(after.action == SemaphoreAction::signal ? set_signal(call, after)
                                                                              : set_wait(call, after));
    if (set) before = after; // same size, so this allocates nothing
    return set;
}

std::unexpected<Error> no_semaphores(const Driver& driver, const char* entry)
{
    return fail(ErrorCode::unsupported,
                "the CUDA driver (version {}.{}) has no {}, which semaphores need: update the driver, or signal and "
                "wait in the stream, before and after the graph",
                driver.version / 1000, driver.version % 1000 / 10, entry);
}

} // namespace warmgraph::backends::cuda
