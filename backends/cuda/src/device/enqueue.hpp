// Work into a stream, capturing or not: what is checked, and how it is given to the driver.
#pragma once

#include <array>
#include <vector>

#include "code/module.hpp"
#include "device/core.hpp"
#include "device/memory.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

/// A launch's parameters as the driver takes them. Refers to the RawKernel, which must stay.
class Arguments {
public:
    explicit Arguments(const RawKernel& work);
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;
    [[nodiscard]] void** params() noexcept { return m_packed_size > 0 ? nullptr : m_params.data(); }
    [[nodiscard]] void** extra() noexcept { return m_packed_size > 0 ? m_extra.data() : nullptr; }
    /// RawKernel::shared_bytes and the sizes of its local parameters, which are no arguments in CUDA.
    [[nodiscard]] std::uint64_t shared_bytes() const noexcept { return m_shared_bytes; }

private:
    std::vector<void*> m_params;
    std::vector<std::uint64_t> m_pointers; ///< of memory parameters
    std::size_t m_packed_size = 0;
    std::array<void*, 5> m_extra{};
    std::uint64_t m_shared_bytes = 0;
};

/// The launch as a captured graph holds it: memory parameters as the bytes of their pointers, local ones as shared bytes.
[[nodiscard]] RawKernel as_values(RawKernel work);

/// The launch's kernel. invalid_argument: no module, another backend's, no such kernel in it.
[[nodiscard]] Result<const KernelInfo*> info_of(const RawKernel& work);

/// Everything that can be known without running it; invalid_argument says what is wrong.
[[nodiscard]] Result<const KernelInfo*> check_launch(const RawKernel& work, const Core& core, const Memory& memory,
                                                     Access access);
[[nodiscard]] Result<void> check_copy(const RawCopy& work, const Memory& memory, Access access);
[[nodiscard]] Result<void> check_fill(const RawFill& work, const Memory& memory, Access access);

/// REQUIRES: the work is checked and the context current.
[[nodiscard]] Result<void> enqueue_kernel(const Core& core, CUstream stream, const KernelInfo& info,
                                          const RawKernel& work);
[[nodiscard]] Result<void> enqueue_copy(const Core& core, CUstream stream, const RawCopy& work);
[[nodiscard]] Result<void> enqueue_fill(const Core& core, CUstream stream, const RawFill& work);

} // namespace warmgraph::backends::cuda
