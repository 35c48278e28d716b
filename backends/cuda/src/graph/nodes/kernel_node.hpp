// Kernel nodes: handing a raw kernel to the driver. Reading them is kernel_reader.hpp's.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "code/module.hpp"
#include "device/core.hpp"
#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// A kernel in use, resolved.
struct KernelFunction {
    Module* module = nullptr;
    std::string name;
    const KernelInfo* info = nullptr;       ///< the module's
    std::vector<FunctionAttribute> applied; ///< what was set last
};

/// The functions of one built graph, each found once. Addresses of KernelFunctions stay.
class KernelFunctions {
public:
    /// With check_params.
    [[nodiscard]] Result<KernelFunction*> find(const RawKernel& kernel);
    [[nodiscard]] std::deque<KernelFunction> take() noexcept { return std::move(m_functions); }

private:
    struct Key {
        const Module* module;
        std::string_view name;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept
        {
            return std::hash<std::string_view>()(key.name) ^ std::hash<const Module*>()(key.module);
        }
    };
    std::deque<KernelFunction> m_functions;
    std::unordered_map<Key, KernelFunction*, Hash> m_index;
};

/// Sets what differs. The limit of dynamic shared memory only grows: other graphs may hold the same function.
[[nodiscard]] Result<void> apply_function_attributes(const Driver& driver, CUfunction function,
                                                     std::span<const FunctionAttribute> attributes);

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

/// A kernel node as instantiated, without its parameters.
struct KeptKernel {
    const KernelFunction* function = nullptr;
    Dim3 grid{}, block{};
    std::uint64_t shared_bytes = 0;
    std::size_t packed_size = 0; ///< 0: kernelParams
    std::vector<RawAttribute> attributes;
};
[[nodiscard]] KeptKernel kept(const RawKernel& kernel, const KernelFunction* function);

[[nodiscard]] Result<void> add(AddCall& call, const RawKernel& kernel);
[[nodiscard]] Result<void> change(const ChangeCall& call, KeptKernel& before, const RawKernel& after);

} // namespace warmgraph::backends::cuda
