// Calls the CUDA driver directly, for tests that capture natively, like any application without warmgraph's API.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>

#include "device/driver.hpp" // the backend's table of driver functions
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::test {

using backends::cuda::Driver;

/// The driver's functions for tests. They throw std::runtime_error with the name of the call and the driver's text.
class Native {
public:
    /// Makes the device's primary context current in the calling thread. There is one object for each process.
    [[nodiscard]] static const Native& instance();

    [[nodiscard]] const Driver& driver() const noexcept { return *m_driver; }
    void check(CUresult status, const char* call) const;
    /// A driver function that the backend does not use: native.find<decltype(&cuFoo)>("cuFoo").
    template <class T>
    [[nodiscard]] T find(const char* name) const
    {
        return reinterpret_cast<T>(find_address(name));
    }

    /// Compiles CUDA C++ with NVRTC to a cubin for this device's architecture. Kernels must be extern "C".
    [[nodiscard]] static Bytes compile(std::string_view source, std::string_view options = "");
    /// Compiles in the same way, but as separate code that is then linked, like nvcc with -rdc=true.
    [[nodiscard]] Bytes compile_and_link(std::string_view source) const;
    [[nodiscard]] int compute_capability() const; ///< e.g. 90
    [[nodiscard]] CUmodule load(ByteView cubin) const;
    [[nodiscard]] CUfunction function(CUmodule module, const char* name) const;
    [[nodiscard]] CUstream stream() const; ///< a new stream, which is never destroyed, because tests are short

    /// Launches a kernel without launch attributes.
    void launch(CUstream stream, CUfunction function, unsigned grid, unsigned block, std::vector<void*> params,
                unsigned shared_bytes = 0, std::vector<CUlaunchAttribute> attributes = {}) const;
    void event_record(CUevent event, CUstream stream) const;
    void stream_wait(CUstream stream, CUevent event) const;
    [[nodiscard]] CUevent event() const;

private:
    Native();
    [[nodiscard]] void* find_address(const char* name) const;

    std::shared_ptr<const Driver> m_driver;
    CUcontext m_context = nullptr;
};

} // namespace warmgraph::test
