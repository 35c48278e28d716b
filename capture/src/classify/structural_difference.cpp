#include "classify/structural_difference.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph {

using backends::canonical;
using backends::EdgeData;
using backends::kind_of;
using backends::RawCopy;
using backends::RawEmpty;
using backends::RawEventRecord;
using backends::RawEventWait;
using backends::RawFill;
using backends::RawGraph;
using backends::RawHost;
using backends::RawKernel;
using backends::RawMemoryOperations;
using backends::RawNode;
using backends::RawSemaphores;
using backends::RawWork;
using backends::SemaphoreAction;

namespace {

std::string_view kind_name(const RawWork& work)
{
    if (const auto* semaphores = std::get_if<RawSemaphores>(&work))
        return semaphores->action == SemaphoreAction::wait ? "semaphore wait" : "semaphore signal";
    return kind_of(work).name;
}

bool is_plain(const RawNode& node)
{
    return std::ranges::all_of(node.edges, [](const EdgeData& data) { return data == EdgeData{}; });
}

bool same_edges(const RawNode& a, const RawNode& b)
{
    return a.edges == b.edges || (is_plain(a) && is_plain(b)); // the driver may list plain edges or leave them implicit
}

/// Describes the difference between two nodes' work, as the end of a sentence about the node; empty if there is no
/// difference.
class WorkDifference {
public:
    explicit WorkDifference(const RawWork& other) : m_other(other) {}

    std::string operator()(const RawEmpty&) const { return {}; }
    std::string operator()(const RawKernel& kernel) const;
    std::string operator()(const RawCopy& copy) const;
    std::string operator()(const RawFill& fill) const;
    std::string operator()(const RawEventRecord& record) const
    {
        return record == std::get<RawEventRecord>(m_other) ? "" : "with another event";
    }
    std::string operator()(const RawEventWait& wait) const
    {
        return wait == std::get<RawEventWait>(m_other) ? "" : "with another event";
    }
    std::string operator()(const RawHost& host) const
    {
        return host == std::get<RawHost>(m_other) ? "" : "with another function or other data";
    }
    std::string operator()(const RawMemoryOperations& batch) const;
    std::string operator()(const RawSemaphores& node) const;

private:
    static std::string params(const RawKernel& a, const RawKernel& b);
    static std::string attributes(const RawKernel& a, const RawKernel& b);

    const RawWork& m_other;
};

std::string WorkDifference::operator()(const RawKernel& a) const
{
    const auto& b = std::get<RawKernel>(m_other);
    if (a.module != b.module) return "of another module";
    if (a.grid != b.grid || a.block != b.block)
        return fmt::format("with grid [{}] block [{}] and then grid [{}] block [{}]", fmt::join(a.grid, ","),
                           fmt::join(a.block, ","), fmt::join(b.grid, ","), fmt::join(b.block, ","));
    if (a.shared_bytes != b.shared_bytes)
        return fmt::format("with {} and then {} bytes of shared memory", a.shared_bytes, b.shared_bytes);
    if (auto difference = params(a, b); !difference.empty()) return difference;
    return attributes(a, b);
}

std::string WorkDifference::params(const RawKernel& a, const RawKernel& b)
{
    if (a.packed != b.packed) return "with another form of parameters";
    if (a.params.size() != b.params.size()) return "with another number of parameters";
    for (std::size_t p = 0; p < a.params.size(); ++p)
        if (a.params[p].kind != b.params[p].kind || a.params[p].value.size() != b.params[p].value.size() ||
            a.params[p].local_size != b.params[p].local_size)
            return fmt::format("with another kind or size of parameter {}", p);
    return {};
}

std::string WorkDifference::attributes(const RawKernel& a, const RawKernel& b)
{
    if (a.attributes.size() != b.attributes.size())
        return fmt::format("with {} and then {} launch attributes", a.attributes.size(), b.attributes.size());
    for (std::size_t i = 0; i < a.attributes.size(); ++i)
        if (a.attributes[i].id != b.attributes[i].id || a.attributes[i].value.size() != b.attributes[i].value.size())
            return fmt::format("with launch attribute {} of {} bytes and then {} of {}", a.attributes[i].id,
                               a.attributes[i].value.size(), b.attributes[i].id, b.attributes[i].value.size());
    if (a.function_attributes != b.function_attributes) return "with other function attributes";
    return {};
}

/// The driver may write the same copy in several ways, depending on alignment; this is not a difference.
std::string WorkDifference::operator()(const RawCopy& copy) const
{
    const RawCopy a = canonical(copy), b = canonical(std::get<RawCopy>(m_other));
    if (a.size != b.size || a.rows != b.rows || a.slices != b.slices) return "with another size";
    if (a.source_pitch != b.source_pitch || a.destination_pitch != b.destination_pitch) return "with another pitch";
    if (a.source_space != b.source_space || a.destination_space != b.destination_space)
        return "between other kinds of memory";
    return {};
}

std::string WorkDifference::operator()(const RawFill& fill) const
{
    const RawFill a = canonical(fill), b = canonical(std::get<RawFill>(m_other));
    return a.size == b.size && a.rows == b.rows && a.pitch == b.pitch && a.pattern == b.pattern
               ? ""
               : "with another size or pattern";
}

std::string WorkDifference::operator()(const RawMemoryOperations& batch) const
{
    const auto &a = batch.operations, &b = std::get<RawMemoryOperations>(m_other).operations;
    if (a.size() != b.size()) return fmt::format("with {} and then {} operations", a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].kind != b[i].kind || a[i].flags != b[i].flags)
            return fmt::format("with another kind or other flags of operation {}", i);
        if (a[i].value != b[i].value)
            return fmt::format("with operation {} of value {:#x} and then {:#x}", i, a[i].value, b[i].value);
    }
    return {};
}

std::string WorkDifference::operator()(const RawSemaphores& node) const
{
    const auto& other = std::get<RawSemaphores>(m_other);
    const auto &a = node.uses, &b = other.uses;
    if (node.action != other.action) return "as another action";
    if (a.size() != b.size()) return fmt::format("with {} and then {} semaphores", a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].semaphore != b[i].semaphore || a[i].flags != b[i].flags)
            return fmt::format("with another semaphore {}, or other flags of it", i);
    return {}; // the semaphores' values may differ: they may follow a scalar
}

/// Two kernels may have equal readable names: instances of one template with other arguments.
std::string other_work(const std::string& was, const std::string& is)
{
    return was == is ? was + " and then one with other template arguments" : fmt::format("{} and then {}", was, is);
}

std::optional<std::string> node_difference(const RawGraph& first, const RawGraph& other, std::size_t i)
{
    const RawNode &a = first.nodes[i], &b = other.nodes[i];
    const auto* kernel = std::get_if<RawKernel>(&a.work);
    if (a.work.index() != b.work.index() || (kernel != nullptr && kernel->kernel != std::get<RawKernel>(b.work).kernel))
        return other_work(describe_node(first, i), describe_node(other, i));
    if (a.dependencies != b.dependencies) return describe_node(first, i) + " with other dependencies";
    if (!same_edges(a, b)) return describe_node(first, i) + " with other edge data";
    if (auto difference = std::visit(WorkDifference{b.work}, a.work); !difference.empty())
        return fmt::format("{} {}", describe_node(first, i), difference);
    return std::nullopt;
}

} // namespace

std::string describe_node(const RawGraph& graph, std::size_t index)
{
    const auto& work = graph.nodes[index].work;
    if (const auto* kernel = std::get_if<RawKernel>(&work))
        return fmt::format("kernel {} (node {})", readable_kernel_name(kernel->kernel), index);
    return fmt::format("{} (node {})", kind_name(work), index);
}

std::optional<std::string> structural_difference(const RawGraph& first, const RawGraph& other)
{
    if (first.nodes.size() != other.nodes.size())
        return fmt::format("{} nodes and then {}", first.nodes.size(), other.nodes.size());
    for (std::size_t i = 0; i < first.nodes.size(); ++i)
        if (auto difference = node_difference(first, other, i)) return difference;
    if (first.allocations.size() != other.allocations.size())
        return fmt::format("{} memory allocations and then {}", first.allocations.size(), other.allocations.size());
    for (std::size_t i = 0; i < first.allocations.size(); ++i)
        if (first.allocations[i].memory.size != other.allocations[i].memory.size)
            return fmt::format("memory allocation {} of {} bytes and then {}", i, first.allocations[i].memory.size,
                               other.allocations[i].memory.size);
    return std::nullopt;
}

} // namespace warmgraph
