// A kernel's parameters for the driver, in launches, in graphs that are built from entries, and in updates. One check for
// all: the driver reads as many bytes as the kernel takes, without asking whether they are there.
#pragma once

#include <array>
#include <vector>

#include "code/module.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

/// That they have the number and sizes that the kernel takes; a packed buffer holds the last one. invalid_argument
/// names the one. Addresses are not looked at.
[[nodiscard]] Result<void> check_params(const RawKernel& kernel, const KernelInfo& info);

/// A raw kernel's parameters in the driver's form, in storage that is used again and again.
class KernelParams {
public:
    /// Makes room, so that fill() of kernels with no more parameters allocates nothing.
    void reserve(std::size_t params)
    {
        if (m_pointers.size() < params) m_pointers.resize(params), m_addresses.resize(params);
    }
    /// Valid until the next call, and as long as `kernel`. REQUIRES: check_params.
    [[nodiscard]] const CUDA_KERNEL_NODE_PARAMS& fill(CUfunction function, const RawKernel& kernel);

private:
    CUDA_KERNEL_NODE_PARAMS m_native{};
    std::vector<void*> m_pointers;
    std::vector<std::uint64_t> m_addresses; ///< of memory parameters
    std::size_t m_packed_size = 0;
    std::array<void*, 5> m_extra{};
};

/// Dynamic shared memory: RawKernel::shared_bytes and its local parameters, which are no arguments in CUDA.
[[nodiscard]] std::uint64_t shared_bytes_of(const RawKernel& kernel) noexcept;

} // namespace warmgraph::backends::cuda
