#include "device/staging.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>

#include "device/memory.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {

namespace {

constexpr unsigned k_most_lanes = 6;

/// Returns half of the number of cores, because other threads of a starting service need some too.
unsigned wanted_lanes(const CudaOptions& options)
{
    return options.upload_lanes.value_or(std::min(k_most_lanes, std::thread::hardware_concurrency() / 2));
}

} // namespace

struct Staging::Lane {
    explicit Lane(const Driver& used) : driver(used) {}
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane()
    {
        if (stream != nullptr) static_cast<void>(driver.status("cuStreamDestroy", driver.cuStreamDestroy, stream));
        if (memory != nullptr) static_cast<void>(driver.status("cuMemFreeHost", driver.cuMemFreeHost, memory));
    }
    [[nodiscard]] Result<void> make()
    {
        constexpr unsigned k_flags = CU_STREAM_NON_BLOCKING;
        auto made = driver.call("cuStreamCreate", driver.cuStreamCreate, &stream, k_flags);
        if (!made) return made;
        return driver.call("cuMemHostAlloc", driver.cuMemHostAlloc, &memory, k_piece,
                           unsigned{CU_MEMHOSTALLOC_PORTABLE});
    }
    [[nodiscard]] Result<void> copy(CUdeviceptr to, ByteView piece) const
    {
        std::memcpy(memory, piece.data(), piece.size());
        auto copied = driver.call("cuMemcpyAsync", driver.cuMemcpyAsync, to, reinterpret_cast<CUdeviceptr>(memory),
                                  piece.size(), stream);
        if (!copied) return copied;
        return driver.call("cuStreamSynchronize", driver.cuStreamSynchronize, stream);
    }

    const Driver& driver;
    CUstream stream = nullptr;
    void* memory = nullptr;
};

/// Hands out pieces to lanes that are free. The first failure stops all.
class Staging::Pieces {
public:
    Pieces(CUdeviceptr to, ByteView bytes) : m_to(to), m_bytes(bytes) {}

    void copy_with(const Lane& lane)
    {
        for (;;) {
            const std::size_t start = m_next.fetch_add(k_piece);
            if (start >= m_bytes.size() || m_has_failed) return;
            const ByteView piece = m_bytes.subspan(start, std::min(k_piece, m_bytes.size() - start));
            auto copied = lane.copy(m_to + start, piece);
            if (!copied && !m_has_failed.exchange(true)) m_failure = std::move(copied);
        }
    }
    /// Call this after all lanes have ended.
    [[nodiscard]] Result<void> result() { return std::move(m_failure); }

private:
    CUdeviceptr m_to;
    ByteView m_bytes;
    std::atomic<std::size_t> m_next{0};
    std::atomic<bool> m_has_failed{false};
    Result<void> m_failure;
};

Staging::Staging(const Core& core) : m_core(core) {}

Staging::~Staging()
{
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    m_lanes.clear();
}

Result<void> Staging::upload(CUdeviceptr to, ByteView bytes)
{
    if (is_worth_it(bytes)) {
        const std::unique_lock lock(m_mutex,
                                    std::try_to_lock); // another upload uses the lanes: then use the driver
        const CurrentContext context(m_core);
        const OutsideCapture outside(m_core);
        if (lock && make_lanes()) {
            Pieces pieces(to, bytes);
            return run(pieces);
        }
    }
    return transfer(m_core, to, reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size());
}

/// False for memory that the driver knows: it is page-locked, and already copied at full speed.
bool Staging::is_worth_it(ByteView bytes) const
{
    if (bytes.size() < k_least || wanted_lanes(m_core.options) < 2) return false;
    const CurrentContext context(m_core);
    CUmemorytype type{};
    const auto start = reinterpret_cast<CUdeviceptr>(bytes.data());
    const Driver& driver = *m_core.driver;
    return driver.status("cuPointerGetAttribute", driver.cuPointerGetAttribute, static_cast<void*>(&type),
                         CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start) != CUDA_SUCCESS;
}

bool Staging::make_lanes()
{
    if (!m_lanes.empty() || m_is_impossible) return !m_is_impossible;
    std::vector<std::unique_ptr<Lane>> lanes;
    for (unsigned i = 0; i < wanted_lanes(m_core.options); ++i) {
        lanes.push_back(std::make_unique<Lane>(*m_core.driver));
        if (auto made = lanes.back()->make(); !made) {
            log().debug("the driver alone does large uploads: {}", made.error().message);
            m_is_impossible = true;
            return false;
        }
    }
    m_lanes = std::move(lanes);
    return true;
}

Result<void> Staging::run(Pieces& pieces)
{
    {
        std::vector<std::jthread> threads;
        threads.reserve(m_lanes.size());
        try {
            for (std::size_t i = 1; i < m_lanes.size(); ++i)
                threads.emplace_back([this, &pieces, &lane = *m_lanes[i]] {
                    const CurrentContext context(m_core);
                    const OutsideCapture outside(m_core);
                    pieces.copy_with(lane);
                });
        } catch (const std::system_error&) { // no more threads: the existing threads copy everything
        }
        pieces.copy_with(*m_lanes.front());
    }
    return pieces.result();
}

} // namespace warmgraph::backends::cuda
