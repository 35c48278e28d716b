#include "patch_table.hpp"
#include "warmgraph/backends/host_functions.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

namespace {

/// A node with everything but what its slots hold.
class Unbound {
public:
    Unbound(std::span<backends::Module* const> modules, const Bindings& bindings)
        : m_modules(modules), m_events(bindings.events), m_semaphores(bindings.semaphores)
    {
    }

    Result<backends::RawWork> operator()(const cachefmt::EmptyNode&) const { return backends::RawEmpty{}; }
    Result<backends::RawWork> operator()(const cachefmt::KernelNode& kernel) const
    {
        backends::RawKernel raw{m_modules[kernel.image], kernel.kernel, kernel.grid, kernel.block, {}};
        raw.params.reserve(kernel.params.size());
        for (const auto& param : kernel.params) raw.params.push_back({param.kind, param.value, {}, param.local_size});
        raw.shared_bytes = kernel.shared_bytes;
        raw.packed = kernel.packed;
        for (const auto& attribute : kernel.attributes) raw.attributes.push_back({attribute.id, attribute.value});
        raw.function_attributes = kernel.function_attributes;
        return raw;
    }
    Result<backends::RawWork> operator()(const cachefmt::CopyNode& copy) const
    {
        return backends::RawCopy{.source = {},
                                 .destination = {},
                                 .size = copy.size,
                                 .rows = copy.rows,
                                 .slices = copy.slices,
                                 .source_pitch = copy.source_pitch,
                                 .destination_pitch = copy.destination_pitch,
                                 .source_space = copy.source_space,
                                 .destination_space = copy.destination_space};
    }
    Result<backends::RawWork> operator()(const cachefmt::FillNode& fill) const
    {
        return backends::RawFill{{}, fill.pattern, fill.size, fill.rows, fill.pitch};
    }
    Result<backends::RawWork> operator()(const cachefmt::EventRecordNode& node) const
    {
        return backends::RawEventRecord{m_events[node.event]};
    }
    Result<backends::RawWork> operator()(const cachefmt::EventWaitNode& node) const
    {
        return backends::RawEventWait{m_events[node.event]};
    }
    Result<backends::RawWork> operator()(const cachefmt::HostNode& node) const
    {
        const auto found = backends::find_host_function(node.function);
        if (!found)
            return fail(ErrorCode::not_found,
                        "host function '{}' is not registered in this process: call register_host_function first",
                        node.function);
        return backends::RawHost{found->function, found->data};
    }
    Result<backends::RawWork> operator()(const cachefmt::MemoryOperationsNode& node) const
    {
        backends::RawMemoryOperations raw;
        raw.operations.reserve(node.operations.size());
        for (const auto& operation : node.operations)
            raw.operations.push_back({operation.kind, {}, operation.value, operation.flags});
        return raw;
    }
    Result<backends::RawWork> operator()(const cachefmt::SemaphoresNode& node) const
    {
        backends::RawSemaphores raw{node.action, {}};
        raw.uses.reserve(node.uses.size());
        for (const auto& use : node.uses) raw.uses.push_back({m_semaphores[use.semaphore], use.value, use.flags});
        return raw;
    }

private:
    std::span<backends::Module* const> m_modules;
    std::span<const std::uint64_t> m_events, m_semaphores;
};

void add_edge(backends::RawGraph& raw, const cachefmt::Edge& edge)
{
    auto& node = raw.nodes[edge.to];
    // Only where an edge says more than the order are there edge data, one for each dependency.
    if (edge.data != cachefmt::EdgeData{} && node.edges.empty()) node.edges.resize(node.dependencies.size());
    node.dependencies.push_back(edge.from);
    if (!node.edges.empty() || edge.data != cachefmt::EdgeData{}) node.edges.push_back(edge.data);
}

Result<void> check_sizes(const cachefmt::Graph& graph, std::size_t modules, const Bindings& bindings)
{
    if (modules != graph.images.size() || bindings.regions.size() != graph.regions.size() ||
        bindings.scalars.size() != graph.scalars.size() || bindings.events.size() != graph.events.size() ||
        bindings.semaphores.size() != graph.semaphores.size())
        return fail(ErrorCode::invalid_argument,
                    "bindings do not fit the graph: {} modules, {} regions, {} scalars, {} events, {} semaphores, "
                    "expected {}, {}, {}, {}, {}",
                    modules, bindings.regions.size(), bindings.scalars.size(), bindings.events.size(),
                    bindings.semaphores.size(), graph.images.size(), graph.regions.size(), graph.scalars.size(),
                    graph.events.size(), graph.semaphores.size());
    return {};
}

} // namespace

Result<backends::RawGraph> resolve(const cachefmt::Graph& graph, std::span<backends::Module* const> modules,
                                   const Bindings& bindings)
{
    if (auto checked = check_sizes(graph, modules.size(), bindings); !checked) return std::unexpected(checked.error());
    backends::RawGraph raw;
    raw.nodes.reserve(graph.nodes.size());
    const Unbound unbound{modules, bindings};
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        auto work = std::visit(unbound, graph.nodes[i]);
        if (!work) return within(fmt::format("node {}", i), work.error());
        raw.nodes.push_back({std::move(*work), {}});
    }
    for (const auto& edge : graph.edges) add_edge(raw, edge);

    const PatchTable table = make_patch_table(graph);
    for (std::size_t region = 0; region < graph.regions.size(); ++region)
        for (const Site& site : table.by_region[region])
            patch_region(raw.nodes[site.node], site, bindings.regions[region].address);
    for (std::size_t scalar = 0; scalar < graph.scalars.size(); ++scalar)
        for (const Site& site : table.by_scalar[scalar])
            patch_scalar(raw.nodes[site.node], site, bindings.scalars[scalar]);
    return raw;
}

} // namespace warmgraph::replay
