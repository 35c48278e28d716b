// Reads kernel nodes of any graph.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "code/module.hpp"
#include "device/core.hpp"
#include "graph/launch_attributes.hpp"
#include "graph/native_graph.hpp"

namespace warmgraph::backends::cuda {

/// Reads the kernel nodes of one graph. Asks for a function's properties (module, name, layout) once.
class KernelReader {
public:
    explicit KernelReader(Core& core) noexcept : m_core(core), m_attributes(*core.driver), m_scratch(*core.driver) {}
    /// not_recordable: a kernel of another context, unknown device code.
    [[nodiscard]] Result<RawKernel> read(CUgraphNode node);

private:
    struct KernelDescription {
        CudaModule* module = nullptr;
        std::string name;
        std::vector<std::uint32_t> sizes; ///< sizes of the parameters
        std::vector<FunctionAttribute> attributes;
        int free_shared = 0;     ///< bytes of dynamic shared memory that a launch may use without raising the limit
        AttributeValues fresh{}; ///< launch attributes of an untouched node
    };
    [[nodiscard]] Result<const KernelDescription*> known(const CUDA_KERNEL_NODE_PARAMS& native);
    [[nodiscard]] Result<AttributeValues> fresh_attributes(const CUDA_KERNEL_NODE_PARAMS& native);

    Core& m_core;
    AttributeReader m_attributes;
    NativeGraph m_scratch; ///< the graph of the untouched nodes
    std::unordered_map<CUfunction, KernelDescription> m_known;
};

} // namespace warmgraph::backends::cuda
