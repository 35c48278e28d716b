// Data that the parts of one CUDA device share.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "code/module_registry.hpp"
#include "device/driver.hpp"
#include "device/recording_side.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::cuda {

/// Outlives all objects that are made from it. The context is the device's primary context, which CUDA's runtime uses
/// too.
struct Core {
    std::shared_ptr<const Driver> driver;
    CudaOptions options;
    const RecordingSide* recording_side = nullptr; ///< null: nothing records or compiles
    CUdevice device = 0;
    CUcontext context = nullptr;
    DeviceLimits limits;
    int compute_major = 0, compute_minor = 0;
    bool reads_host_memory =
        false; ///< kernels can read any memory of the process (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)
    std::size_t malloc_heap = 0;  ///< bytes of the heap for device code's malloc, read when the device was opened
    CUstream transfers = nullptr; ///< the stream for uploads, downloads and module variables: waits for no other work
    MemoryTally tally;            ///< the memory of Memory and Shadows
    ModuleRegistry modules;       ///< all modules whose kernels a captured graph may contain

    /// Returns e.g. "sm_90".
    [[nodiscard]] std::string architecture() const { return fmt::format("sm_{}{}", compute_major, compute_minor); }

    /// The most threads that build graphs at once. More threads would only slow each other down in the driver's lock
    /// (NOTES.md).
    static constexpr int k_builders = 4;
    /// Occupies one of the k_builders places while it lives. (libstdc++ 12's std::counting_semaphore can sleep through
    /// a release.)
    class BuilderPermit {
    public:
        explicit BuilderPermit(Core& core) : m_core(core)
        {
            std::unique_lock lock(m_core.m_builders_mutex);
            m_core.m_builder_left.wait(lock, [this] { return m_core.m_builders < k_builders; });
            ++m_core.m_builders;
        }
        BuilderPermit(const BuilderPermit&) = delete;
        BuilderPermit& operator=(const BuilderPermit&) = delete;
        ~BuilderPermit()
        {
            {
                const std::scoped_lock lock(m_core.m_builders_mutex);
                --m_core.m_builders;
            }
            m_core.m_builder_left.notify_one();
        }

    private:
        Core& m_core;
    };

private:
    std::mutex m_builders_mutex; // guards m_builders
    std::condition_variable m_builder_left;
    int m_builders = 0;
};

/// Makes the core's context current in its scope, then restores the caller's context. Cheap: two driver calls (0.1 us
/// in all), or one fast call if the context is already current. If it fails, the next driver call reports the error.
class CurrentContext {
public:
    explicit CurrentContext(const Core& core) noexcept : m_core(core)
    {
        CUcontext now = nullptr;
        if (core.driver->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == core.context && now != nullptr) return;
        // Try twice, because resources that cannot be released here would leak for good.
        for (int i = 0; i < 2 && !m_pushed; ++i) m_pushed = core.driver->cuCtxPushCurrent(core.context) == CUDA_SUCCESS;
    }
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    ~CurrentContext()
    {
        CUcontext popped = nullptr;
        if (m_pushed) static_cast<void>(m_core.driver->cuCtxPopCurrent(&popped));
    }

private:
    const Core& m_core;
    bool m_pushed = false;
};

/// Lets this thread allocate, load code and transfer while one of its streams captures. Such calls belong to no stream,
/// but would break a thread-local capture. Watches of the thread (enqueue_watch.hpp) ignore them too.
class OutsideCapture {
public:
    explicit OutsideCapture(const Core& core) noexcept : OutsideCapture(*core.driver) {}
    explicit OutsideCapture(const Driver& driver) noexcept : m_driver(driver)
    {
        m_changed = driver.cuThreadExchangeStreamCaptureMode(&m_mode) == CUDA_SUCCESS;
        ++t_depth;
    }
    OutsideCapture(const OutsideCapture&) = delete;
    OutsideCapture& operator=(const OutsideCapture&) = delete;
    ~OutsideCapture()
    {
        --t_depth;
        if (m_changed) static_cast<void>(m_driver.cuThreadExchangeStreamCaptureMode(&m_mode));
    }
    /// True on a thread with such an object.
    [[nodiscard]] static bool is_active() noexcept { return t_depth > 0; }

private:
    static inline constinit thread_local int t_depth = 0;
    const Driver& m_driver;
    CUstreamCaptureMode m_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool m_changed = false;
};

} // namespace warmgraph::backends::cuda
