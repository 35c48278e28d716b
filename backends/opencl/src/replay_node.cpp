#include "replay_node.hpp"

#include "enqueue.hpp"
#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends::opencl {
Result<ReplayNode> ReplayNode::make(const RawWork& work, const LaunchLimits& limits, Memory& memory)
{
    ReplayNode node;
    node.m_work = work;
    Result<void> made;
    if (const auto* kernel = std::get_if<RawKernel>(&work)) {
        made = check_launch(*kernel, limits, memory);
        if (made) made = node.set_kernel(*kernel, memory);
    } else if (const auto* copy = std::get_if<RawCopy>(&work)) {
        made = node.bind(*copy, memory);
    } else if (const auto* fill = std::get_if<RawFill>(&work)) {
        made = node.bind(*fill, memory);
    } else {
        made = check_plain(work);
    }
    if (!made) return std::unexpected(made.error());
    return node;
}

Result<void> ReplayNode::set_kernel(const RawKernel& work, Memory& memory)
{
    const auto module = module_of(work);
    if (!module) return std::unexpected(module.error());
    auto kernel = (*module)->create_kernel(work.kernel);
    if (!kernel) return std::unexpected(kernel.error());
    for (cl_uint index = 0; index < work.params.size(); ++index) {
        if (auto set = set_param(kernel->get(), index, work.params[index], memory); !set) return set;
    }
    (*module)->note_launch(work.kernel, work.grid, work.block);
    m_kernel = std::move(*kernel);
    m_geometry = geometry_of(work);
    return {};
}

Result<void> ReplayNode::bind(const RawCopy& work, const Memory& memory)
{
    if (auto checked = check_copy(work, memory); !checked) return checked;
    const auto source = memory.object("copy source", work.source, work.size);
    if (!source) return std::unexpected(source.error());
    const auto destination = memory.object("copy destination", work.destination, work.size);
    if (!destination) return std::unexpected(destination.error());
    m_source = *source;
    m_destination = *destination;
    m_work = work;
    return {};
}

Result<void> ReplayNode::bind(const RawFill& work, const Memory& memory)
{
    if (auto checked = check_fill(work, memory); !checked) return checked;
    const auto destination = memory.object("fill destination", work.destination, work.size);
    if (!destination) return std::unexpected(destination.error());
    m_destination = *destination;
    m_work = work;
    return {};
}

Result<void> ReplayNode::enqueue(cl_command_queue queue, std::span<const cl_event> waits, cl_event* event) const
{
    if (m_kernel) return enqueue_kernel(queue, m_kernel.get(), m_geometry, waits, event);
    if (const auto* copy = std::get_if<RawCopy>(&m_work))
        return enqueue_copy(queue, m_source, m_destination, *copy, waits, event);
    if (const auto* fill = std::get_if<RawFill>(&m_work))
        return enqueue_fill(queue, m_destination, *fill, waits, event);
    if (waits.empty() && event == nullptr) return {};
    return enqueue_barrier(queue, waits, event);
}

Result<void> ReplayNode::update(const RawWork& work, Memory& memory)
{
    if (auto checked = check_update(m_work, work); !checked) return checked;
    if (const auto* kernel = std::get_if<RawKernel>(&work)) return update_kernel(*kernel, memory);
    if (const auto* copy = std::get_if<RawCopy>(&work)) return bind(*copy, memory);
    if (const auto* fill = std::get_if<RawFill>(&work)) return bind(*fill, memory);
    return {};
}

Result<void> ReplayNode::update_kernel(const RawKernel& work, Memory& memory)
{
    RawKernel& current = std::get<RawKernel>(m_work);
    for (cl_uint index = 0; index < work.params.size(); ++index) {
        RawParam& param = current.params[index];
        if (!m_must_set_all && param == work.params[index]) continue;
        if (auto set = set_param(m_kernel.get(), index, work.params[index], memory); !set) {
            m_must_set_all = true;
            return within(fmt::format("update of kernel '{}', parameter {}", work.kernel, index), set.error());
        }
        param = work.params[index];
    }
    m_must_set_all = false;
    return {};
}

} // namespace warmgraph::backends::opencl
