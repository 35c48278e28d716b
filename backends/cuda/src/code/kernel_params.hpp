// A kernel's parameters in the driver's form, for launches, new graph nodes and updates. They share one check, because
// the driver reads as many bytes as the kernel takes, whether they exist or not.
#pragma once

#include <array>
#include <vector>

#include "code/module.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

/// Checks the number and sizes of the parameters; a packed buffer must reach to the end of the last parameter.
/// invalid_argument names the wrong parameter. Does not check addresses.
[[nodiscard]] Result<void> check_params(const RawKernel& kernel, const KernelInfo& info);

/// A raw kernel's parameters in the driver's form. The storage is reused.
class KernelParams {
public:
    /// Makes room, so that fill() allocates nothing for kernels with at most this many parameters.
    void reserve(std::size_t params)
    {
        if (m_pointers.size() < params) m_pointers.resize(params), m_addresses.resize(params);
    }
    /// The result is valid until the next call and while `kernel` exists. REQUIRES: check_params().
    [[nodiscard]] const CUDA_KERNEL_NODE_PARAMS& fill(CUfunction function, const RawKernel& kernel);

private:
    CUDA_KERNEL_NODE_PARAMS m_native{};
    std::vector<void*> m_pointers;
    std::vector<std::uint64_t> m_addresses; ///< the values of memory parameters
    std::size_t m_packed_size = 0;
    std::array<void*, 5> m_extra{};
};

/// Dynamic shared memory: RawKernel::shared_bytes and the local parameters, which are not arguments in CUDA.
[[nodiscard]] std::uint64_t shared_bytes_of(const RawKernel& kernel) noexcept;

} // namespace warmgraph::backends::cuda
