#include "nodes.hpp"

#include "warmgraph/backends/host_functions.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

namespace {

using backends::NodePlaceKind;
using VisitSlot = std::function<void(const backends::NodePlace&, const cachefmt::Slot&)>;

class Slots {
public:
    explicit Slots(const VisitSlot& visit) : m_visit(visit) {}

    void operator()(const cachefmt::EmptyNode&) const {}
    void operator()(const cachefmt::EventRecordNode&) const {}
    void operator()(const cachefmt::EventWaitNode&) const {}
    void operator()(const cachefmt::HostNode&) const {}
    void operator()(const cachefmt::KernelNode& kernel) const
    {
        for (std::uint32_t i = 0; i < kernel.params.size(); ++i)
            for (const auto& slot : kernel.params[i].slots) m_visit({NodePlaceKind::parameter, i}, slot);
        for (std::uint32_t i = 0; i < kernel.attributes.size(); ++i)
            for (const auto& slot : kernel.attributes[i].slots) m_visit({NodePlaceKind::attribute, i}, slot);
    }
    void operator()(const cachefmt::CopyNode& copy) const
    {
        m_visit({NodePlaceKind::source}, copy.source);
        m_visit({NodePlaceKind::destination}, copy.destination);
    }
    void operator()(const cachefmt::FillNode& fill) const { m_visit({NodePlaceKind::destination}, fill.destination); }
    void operator()(const cachefmt::MemoryOperationsNode& batch) const
    {
        for (std::uint32_t i = 0; i < batch.operations.size(); ++i)
            if (cachefmt::width_of(batch.operations[i].kind) != 0) // a barrier has no address
                m_visit({NodePlaceKind::operation, i}, batch.operations[i].address);
    }
    void operator()(const cachefmt::SemaphoresNode& semaphores) const
    {
        for (std::uint32_t i = 0; i < semaphores.uses.size(); ++i)
            if (const auto& slot = semaphores.uses[i].slot) m_visit({NodePlaceKind::semaphore, i}, *slot);
    }

private:
    const VisitSlot& m_visit;
};

/// Makes the work of each kind of node, without the slots' values.
class UnboundWork {
public:
    UnboundWork(std::span<backends::Module* const> modules, const Bindings& bindings)
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

} // namespace

void for_each_slot(const cachefmt::Node& node, const VisitSlot& visit) { std::visit(Slots{visit}, node); }

Result<backends::RawWork> unbound_work(const cachefmt::Node& node, std::span<backends::Module* const> modules,
                                       const Bindings& bindings)
{
    return std::visit(UnboundWork{modules, bindings}, node);
}

} // namespace warmgraph::replay
