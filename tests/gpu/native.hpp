// The CUDA driver for tests that capture natively, like any application, without warmgraph's API.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>

#include "device/driver.hpp" // the backend's table of entry points
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::test {

using backends::cuda::Driver;

/// Throws std::runtime_error with the call's name and the driver's text.
class Native {
public:
    /// The device's primary context, made current in the calling thread. One per process.
    [[nodiscard]] static const Native& instance();

    [[nodiscard]] const Driver& driver() const noexcept { return *m_driver; }
    void check(CUresult status, const char* call) const;
    /// An entry point that the backend does not use: native.find<decltype(&cuFoo)>("cuFoo").
    template <class T>
    [[nodiscard]] T find(const char* name) const
    {
        return reinterpret_cast<T>(find_address(name));
    }

    /// NVRTC: CUDA C++ to a cubin of this device's architecture. Kernels are extern "C".
    [[nodiscard]] static Bytes compile(std::string_view source, std::string_view options = "");
    /// The same, compiled separately and then linked, like nvcc with -rdc=true.
    [[nodiscard]] Bytes compile_and_link(std::string_view source) const;
    [[nodiscard]] int compute_capability() const; ///< e.g. 90
    [[nodiscard]] CUmodule load(ByteView cubin) const;
    [[nodiscard]] CUfunction function(CUmodule module, const char* name) const;
    [[nodiscard]] CUstream stream() const; ///< a new one, never destroyed: tests are short

    /// A plain launch.
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
