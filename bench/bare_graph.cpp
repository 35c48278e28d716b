#include "bare_graph.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "timing.hpp"

namespace warmgraph::bench {
namespace {

/// Times one thing after the other.
class Laps {
public:
    explicit Laps(NamedTimes& times) : m_times(times), m_begin(now()) {}
    void end(const char* name)
    {
        const SteadyTime end = now();
        m_times.emplace_back(name, std::chrono::duration<double, std::milli>(end - m_begin).count());
        m_begin = now();
    }

private:
    NamedTimes& m_times;
    SteadyTime m_begin;
};

} // namespace

void BareGraph::warm_up() const
{
    constexpr unsigned k_any_device_has = 48 << 10; // bytes of shared memory, without an attribute
    const auto has_little = [](const Kernel& kernel) {
        return kernel.params.sharedMemBytes <= k_any_device_has && kernel.packed_size == 0;
    };
    const auto kernel = std::ranges::find_if(m_kernels, has_little);
    if (kernel == m_kernels.end()) throw std::runtime_error("no kernel of the entry does to warm up with");
    const Function& function = m_functions[kernel->function];
    CUmodule module = nullptr;
    m_driver.call("cuModuleLoadData", m_driver.cuModuleLoadData, &module,
                  static_cast<const void*>(m_images[function.image].bytes.data()));
    CUDA_KERNEL_NODE_PARAMS params = kernel->params;
    m_driver.call("cuModuleGetFunction", m_driver.cuModuleGetFunction, &params.func, module, function.name.c_str());
    CUgraph graph = nullptr;
    m_driver.call("cuGraphCreate", m_driver.cuGraphCreate, &graph, 0U);
    CUgraphNode last = nullptr;
    for (std::size_t i = 0; i < m_nodes.size(); ++i) {
        const CUgraphNode before = last;
        m_driver.call("cuGraphAddKernelNode", m_driver.cuGraphAddKernelNode, &last, graph, &before,
                      std::size_t{i == 0 ? 0U : 1U}, &params);
    }
    CUgraphExec exec = nullptr;
    m_driver.call("cuGraphInstantiate", m_driver.cuGraphInstantiate, &exec, graph, 0ULL);
    m_driver.call("cuGraphExecDestroy", m_driver.cuGraphExecDestroy, exec);
    m_driver.call("cuGraphDestroy", m_driver.cuGraphDestroy, graph);
    // The module stays: unloading it would wait for the device.
}

// --- while the clock runs

void BareGraph::load_images()
{
    for (Image& image : m_images)
        m_driver.call("cuModuleLoadData", m_driver.cuModuleLoadData, &image.module,
                      static_cast<const void*>(image.bytes.data()));
}

void BareGraph::write_variables()
{
    for (const Image& image : m_images) {
        for (const Variable& variable : image.variables) {
            CUdeviceptr address = 0;
            std::size_t size = 0;
            m_driver.call("cuModuleGetGlobal", m_driver.cuModuleGetGlobal, &address, &size, image.module,
                          variable.name.c_str());
            if (size != variable.contents.size())
                throw std::runtime_error(fmt::format("variable '{}' has {} bytes, {} are stored for it", variable.name,
                                                     size, variable.contents.size()));
            if (size == 0) continue;
            m_driver.call("cuMemcpyHtoD", m_driver.cuMemcpyHtoD, address,
                          static_cast<const void*>(variable.contents.data()), size);
        }
    }
}

void BareGraph::get_functions()
{
    for (Function& function : m_functions)
        m_driver.call("cuModuleGetFunction", m_driver.cuModuleGetFunction, &function.function,
                      m_images[function.image].module, function.name.c_str());
}

void BareGraph::set(const Setting& setting) const
{
    m_driver.call("cuFuncSetAttribute", m_driver.cuFuncSetAttribute, m_functions[setting.function].function, setting.id,
                  setting.value);
}

void BareGraph::add_kernel(Kernel& kernel, CUgraphNode* node) const
{
    for (const Setting& setting : kernel.before) set(setting);
    kernel.params.func = m_functions[kernel.function].function;
    m_driver.call("cuGraphAddKernelNode", m_driver.cuGraphAddKernelNode, node, m_graph, nullptr, std::size_t{0},
                  &kernel.params);
}

void BareGraph::add_nodes()
{
    m_driver.call("cuGraphCreate", m_driver.cuGraphCreate, &m_graph, 0U);
    for (std::size_t i = 0; i < m_nodes.size(); ++i) {
        CUgraphNode* const node = &m_native[i];
        const std::size_t index = m_nodes[i].index;
        switch (m_nodes[i].kind) {
        case Kind::kernel: add_kernel(m_kernels[index], node); break;
        case Kind::copy:
            m_driver.call("cuGraphAddMemcpyNode", m_driver.cuGraphAddMemcpyNode, node, m_graph, nullptr, std::size_t{0},
                          &m_copies[index], m_context.context);
            break;
        case Kind::fill:
            m_driver.call("cuGraphAddMemsetNode", m_driver.cuGraphAddMemsetNode, node, m_graph, nullptr, std::size_t{0},
                          &m_fills[index], m_context.context);
            break;
        case Kind::empty:
            m_driver.call("cuGraphAddEmptyNode", m_driver.cuGraphAddEmptyNode, node, m_graph, nullptr, std::size_t{0});
            break;
        }
    }
}

void BareGraph::set_attributes() const
{
    for (const Attribute& attribute : m_attributes) {
        const CUgraphNode node = m_native[attribute.node];
        const CUresult status = m_driver.cuGraphKernelNodeSetAttribute(node, attribute.id, &attribute.value);
        if (status == CUDA_SUCCESS) continue;
        // What a kernel was compiled with (__cluster_dims__) may be refused to be set, and is there all the same.
        CUlaunchAttributeValue held{};
        if (m_driver.cuGraphKernelNodeGetAttribute(node, attribute.id, &held) != CUDA_SUCCESS ||
            std::memcmp(&held, &attribute.value, attribute.size) != 0)
            m_driver.fail("cuGraphKernelNodeSetAttribute", status);
    }
}

void BareGraph::add_edges()
{
    for (EdgeGroup& group : m_edges) {
        for (std::size_t i = 0; i < group.edges.size(); ++i) {
            group.from[i] = m_native[group.edges[i].first];
            group.to[i] = m_native[group.edges[i].second];
        }
        m_driver.call("cuGraphAddDependencies", m_driver.cuGraphAddDependencies, m_graph, group.from.data(),
                      group.to.data(), group.native.data(), group.from.size());
    }
}

NamedTimes BareGraph::restore()
{
    NamedTimes times;
    times.reserve(16);
    Laps laps(times);
    load_images();
    laps.end("load images");
    write_variables();
    laps.end("write variables");
    get_functions();
    laps.end("get functions");
    for (const Setting& setting : m_settings) set(setting);
    laps.end("function attributes");
    add_nodes();
    laps.end("add nodes");
    set_attributes();
    laps.end("node attributes");
    add_edges();
    laps.end("edges");
    m_driver.call("cuGraphInstantiate", m_driver.cuGraphInstantiate, &m_exec, m_graph, m_flags);
    laps.end("instantiate");
    m_driver.call("cuGraphLaunch", m_driver.cuGraphLaunch, m_exec, m_context.stream);
    m_driver.call("cuStreamSynchronize", m_driver.cuStreamSynchronize, m_context.stream);
    laps.end("launch, synchronise");
    return times;
}

} // namespace warmgraph::bench
