// Kernel nodes: reading them, and handing a raw kernel to the driver.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core.hpp"
#include "graph_builder.hpp"
#include "launch_attributes.hpp"
#include "module.hpp"

namespace warmgraph::backends::cuda {

/// Reads the kernel nodes of one graph. What is a function's (module, name, layout) is asked for once.
class KernelReader {
public:
    explicit KernelReader(Core& core) noexcept : m_core(core), m_attributes(*core.driver), m_scratch(*core.driver) {}
    /// not_recordable: another context's kernel, unknown device code.
    [[nodiscard]] Result<RawKernel> read(CUgraphNode node);

private:
    struct Known {
        CudaModule* module = nullptr;
        std::string name;
        std::vector<std::uint32_t> sizes; ///< of parameters
        std::vector<FunctionAttribute> attributes;
        int free_shared = 0;     ///< bytes of dynamic shared memory that a launch has without raising the limit
        AttributeValues fresh{}; ///< launch attributes of a node to which nothing was done
    };
    [[nodiscard]] Result<const Known*> known(const CUDA_KERNEL_NODE_PARAMS& native);
    [[nodiscard]] Result<AttributeValues> fresh_attributes(const CUDA_KERNEL_NODE_PARAMS& native);

    Core& m_core;
    AttributeReader m_attributes;
    NativeGraph m_scratch; ///< holds the fresh nodes
    std::unordered_map<CUfunction, Known> m_known;
};

/// The functions of one built graph, each found once. Addresses of KernelFunctions stay.
class KernelFunctions {
public:
    /// With check_params. REQUIRES: the name's text outlives this object.
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

/// That the parameters have the function's number and sizes: the driver reads them without asking. invalid_argument names
/// the one. `packed_size`: what the packed buffer must have; 0 for any.
[[nodiscard]] Result<void> check_params(const RawKernel& kernel, const KernelInfo& info, std::size_t packed_size = 0);
/// Dynamic shared memory: RawKernel::shared_bytes and its local parameters, which are no arguments in CUDA.
[[nodiscard]] std::uint64_t shared_bytes_of(const RawKernel& kernel) noexcept;

} // namespace warmgraph::backends::cuda
