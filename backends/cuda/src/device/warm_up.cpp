#include "device/warm_up.hpp"

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "graph/host_pages.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {

namespace {

/// Nodes, as many as a language model's decode step has: the driver's memory for nodes grows with their number.
constexpr std::size_t k_nodes = 256;
/// Host memory for restoring that many nodes: 8 KB a node for the driver, the rest for the entry, its images and its
/// graph. The first touch of a page costs more than writing to it (1.5 us on a rented H200).
constexpr std::size_t k_host_bytes = k_nodes * 24 * 1024;

bool is_wanted()
{
    const char* const value = std::getenv("WARMGRAPH_WARM_UP");
    return value == nullptr || std::string_view{value} != "0";
}

class ThrowawayGraph {
public:
    explicit ThrowawayGraph(const Driver& driver) : m_driver(driver) {}
    ThrowawayGraph(const ThrowawayGraph&) = delete;
    ThrowawayGraph& operator=(const ThrowawayGraph&) = delete;
    ~ThrowawayGraph()
    {
        if (m_exec != nullptr)
            static_cast<void>(m_driver.status("cuGraphExecDestroy", m_driver.cuGraphExecDestroy, m_exec));
        if (m_graph != nullptr) static_cast<void>(m_driver.status("cuGraphDestroy", m_driver.cuGraphDestroy, m_graph));
    }
    /// Makes a chain of kernel nodes.
    [[nodiscard]] Result<void> make(CUfunction function)
    {
        auto made = m_driver.call("cuGraphCreate", m_driver.cuGraphCreate, &m_graph, 0U);
        bulk::WarmUpWork work;
        std::array<void*, 1> pointers{&work};
        CUDA_KERNEL_NODE_PARAMS params{};
        params.func = function;
        params.gridDimX = params.gridDimY = params.gridDimZ = 1;
        params.blockDimX = params.blockDimY = params.blockDimZ = 1;
        params.kernelParams = pointers.data();
        CUgraphNode before = nullptr;
        for (std::size_t i = 0; made && i < k_nodes; ++i) {
            const CUgraphNode last = before;
            made = m_driver.call("cuGraphAddKernelNode", m_driver.cuGraphAddKernelNode, &before, m_graph, &last,
                                 std::size_t{i == 0 ? 0U : 1U}, &params);
        }
        if (!made) return made;
        return m_driver.call("cuGraphInstantiate", m_driver.cuGraphInstantiate, &m_exec, m_graph, 0ULL);
    }

private:
    const Driver& m_driver;
    CUgraph m_graph = nullptr;
    CUgraphExec m_exec = nullptr;
};

Result<void> warm_up(const Core& core, bulk::Launcher& launcher)
{
    if (!launcher.is_ready(bulk::Launcher::Compile::never))
        return fail(ErrorCode::unsupported, "there is no code for this device");
    const CurrentContext context(core);
    const OutsideCapture outside(core); // another thread may be capturing
    return ThrowawayGraph{*core.driver}.make(launcher.function(bulk::Kernel::warm_up));
}

} // namespace

struct WarmUp::State {
    std::mutex mutex; // guards the members below
    std::condition_variable changed;
    enum class Stage : std::uint8_t { not_begun, running, done } stage = Stage::not_begun;
    pid_t process = 0; ///< the process that started the thread: a forked child lacks the thread
};

WarmUp::WarmUp(const Core& core, bulk::Launcher& launcher)
    : m_state(std::make_shared<State>()), m_core(core), m_launcher(launcher), m_at_exit([this] { wait(); })
{
}

WarmUp::~WarmUp() { wait(); }

void WarmUp::begin(std::function<void()> first) noexcept
try {
    using Stage = State::Stage;
    const std::scoped_lock lock(m_state->mutex);
    if (m_state->stage != Stage::not_begun || !is_wanted()) return;
    const GrownHeap heap(k_host_bytes);
    std::thread{[state = m_state, &core = m_core, &launcher = m_launcher, first = std::move(first)]() noexcept {
        try {
            // glibc gives the heap of an ended thread to the next new thread, which will read images.
            const GrownHeap own(k_host_bytes);
            first();
            if (auto warmed = warm_up(core, launcher); !warmed)
                log().debug("the warm-up failed: {}", warmed.error().message);
        } catch (const std::exception&) { // the first real use reports the error
        }
        const std::scoped_lock ending(state->mutex);
        state->stage = Stage::done;
        state->changed.notify_all();
    }}.detach();
    m_state->stage = Stage::running;
    m_state->process = ::getpid();
} catch (const std::exception&) { // without the thread the first restore takes longer
}

void WarmUp::wait() noexcept
{
    std::unique_lock lock(m_state->mutex);
    if (m_state->stage != State::Stage::running || m_state->process != ::getpid()) return;
    m_state->changed.wait(lock, [this] { return m_state->stage == State::Stage::done; });
}

} // namespace warmgraph::backends::cuda
