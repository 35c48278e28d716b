// Adds and changes kernel nodes. kernel_reader.hpp reads them.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "code/kernel_params.hpp"
#include "code/module.hpp"
#include "device/core.hpp"
#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// A kernel in use, with its module and properties.
struct KernelFunction {
    Module* module = nullptr;
    std::string name;
    const KernelInfo* info = nullptr;       ///< owned by the module
    std::vector<FunctionAttribute> applied; ///< attributes that were last set
};

/// The functions of one built graph; each is looked up once. Addresses of KernelFunctions stay valid.
class KernelFunctions {
public:
    /// Finds the kernel's function, and runs check_params().
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

/// Sets attributes that differ. The limit of dynamic shared memory only grows: other graphs may use the same function.
[[nodiscard]] Result<void> apply_function_attributes(const Driver& driver, CUfunction function,
                                                     std::span<const FunctionAttribute> attributes);

/// An instantiated kernel node without its parameters.
struct InstantiatedKernel {
    const KernelFunction* function = nullptr;
    Dim3 grid{}, block{};
    std::uint64_t shared_bytes = 0;
    std::size_t packed_size = 0; ///< 0: separate parameters (kernelParams)
    std::vector<RawAttribute> attributes;
};
[[nodiscard]] InstantiatedKernel kept(const RawKernel& kernel, const KernelFunction* function);

[[nodiscard]] Result<void> add(AddCall& call, const RawKernel& kernel);
[[nodiscard]] Result<void> change(const ChangeCall& call, InstantiatedKernel& before, const RawKernel& after);

} // namespace warmgraph::backends::cuda
