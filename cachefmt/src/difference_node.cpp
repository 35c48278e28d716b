#include <algorithm>
#include <map>
#include <utility>

#include "cuda_names.hpp"
#include "describe.hpp"
#include "difference_lines.hpp"
#include "identity.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::cachefmt {
namespace {

/// Items of both by id, for lists that are sorted by it.
template <class Item>
std::map<std::uint32_t, std::pair<const Item*, const Item*>> by_id(const std::vector<Item>& recorded,
                                                                   const std::vector<Item>& now)
{
    std::map<std::uint32_t, std::pair<const Item*, const Item*>> pairs;
    for (const Item& item : recorded) pairs[item.id].first = &item;
    for (const Item& item : now) pairs[item.id].second = &item;
    return pairs;
}

class NodeDifference {
public:
    NodeDifference(DifferenceLines& lines, const Graph& recorded, const Graph& now, std::string where)
        : m_lines(lines), m_recorded(recorded), m_now(now), m_where(std::move(where))
    {
    }

    void compare(const EmptyNode&, const EmptyNode&) {}

    void compare(const KernelNode& a, const KernelNode& b)
    {
        name(a.kernel, b.kernel);
        m_lines.number(m_where, "image", a.image, b.image);
        if (a.grid != b.grid) m_lines.line(m_where, "grid", to_text(a.grid), to_text(b.grid));
        if (a.block != b.block) m_lines.line(m_where, "block", to_text(a.block), to_text(b.block));
        m_lines.number(m_where, "dynamic shared bytes", a.shared_bytes, b.shared_bytes);
        const auto form = [](const KernelNode& kernel) { return kernel.packed ? "packed" : "separate"; };
        if (a.packed != b.packed) m_lines.line(m_where, "parameters", form(a), form(b));
        m_lines.number(m_where, "parameters", a.params.size(), b.params.size());
        for (std::size_t i = 0; i < std::min(a.params.size(), b.params.size()); ++i)
            if (!(a.params[i] == b.params[i]))
                param(fmt::format("{}: parameter {}", m_where, i), a.params[i], b.params[i]);
        attributes(a, b);
    }

    void compare(const CopyNode& a, const CopyNode& b)
    {
        slot(m_where + ": source", a.source, b.source);
        slot(m_where + ": destination", a.destination, b.destination);
        m_lines.number(m_where, "size", a.size, b.size);
        m_lines.number(m_where, "rows", a.rows, b.rows);
        m_lines.number(m_where, "slices", a.slices, b.slices);
        pitch("source pitch", a.source_pitch, b.source_pitch);
        pitch("destination pitch", a.destination_pitch, b.destination_pitch);
        space("source memory", a.source_space, b.source_space);
        space("destination memory", a.destination_space, b.destination_space);
    }

    void compare(const FillNode& a, const FillNode& b)
    {
        slot(m_where + ": destination", a.destination, b.destination);
        m_lines.bytes(m_where, "pattern", a.pattern, b.pattern);
        m_lines.number(m_where, "size", a.size, b.size);
        m_lines.number(m_where, "rows", a.rows, b.rows);
        m_lines.number(m_where, "pitch", a.pitch, b.pitch);
    }

    void compare(const EventRecordNode& a, const EventRecordNode& b) { event(a.event, b.event); }
    void compare(const EventWaitNode& a, const EventWaitNode& b) { event(a.event, b.event); }
    void compare(const HostNode& a, const HostNode& b) { m_lines.text(m_where, "function", a.function, b.function); }

    void compare(const MemoryOperationsNode& a, const MemoryOperationsNode& b)
    {
        m_lines.number(m_where, "operations", a.operations.size(), b.operations.size());
        for (std::size_t i = 0; i < std::min(a.operations.size(), b.operations.size()); ++i)
            operation(fmt::format("{}: operation {}", m_where, i), a.operations[i], b.operations[i]);
    }

    void compare(const SemaphoresNode& a, const SemaphoresNode& b)
    {
        if (a.action != b.action) m_lines.line(m_where, "", to_string(a.action), to_string(b.action));
        m_lines.number(m_where, "semaphores", a.uses.size(), b.uses.size());
        for (std::size_t i = 0; i < std::min(a.uses.size(), b.uses.size()); ++i)
            semaphore(fmt::format("{}: semaphore {}", m_where, i), a.uses[i], b.uses[i]);
    }

private:
    /// The whole names only where they must be seen to tell the two apart.
    void name(const std::string& a, const std::string& b)
    {
        const std::string was = readable_kernel_name(a), is = readable_kernel_name(b);
        m_lines.text(m_where, "kernel", was != is ? was : a, was != is ? is : b);
    }

    void param(const std::string& where, const Param& a, const Param& b)
    {
        if (a.kind != b.kind) return m_lines.line(where, "", described(a, m_recorded), described(b, m_now));
        m_lines.bytes(where, "value", canonical_value(a), canonical_value(b));
        m_lines.number(where, "work-group bytes", a.local_size, b.local_size);
        slots(where, a.slots, b.slots);
    }

    static std::string described(const Param& param, const Graph& graph)
    {
        return fmt::format("{} ({})", to_string(param.kind), to_text(param, graph));
    }

    void slots(const std::string& where, const std::vector<Slot>& a, const std::vector<Slot>& b)
    {
        m_lines.number(where, "slots", a.size(), b.size());
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
            slot(fmt::format("{}: slot {}", where, i), a[i], b[i]);
    }

    void slot(const std::string& where, const Slot& a, const Slot& b)
    {
        const bool points_elsewhere = a.kind != b.kind || a.target != b.target || a.addend != b.addend;
        if (points_elsewhere) m_lines.line(where, "", to_text(a, m_recorded), to_text(b, m_now));
        m_lines.number(where, "offset", a.offset, b.offset);
        m_lines.number(where, "width", int{a.width}, int{b.width});
    }

    void operation(const std::string& where, const MemoryOperation& a, const MemoryOperation& b)
    {
        if (a.kind != b.kind) return m_lines.line(where, "", to_text(a, m_recorded), to_text(b, m_now));
        slot(where, a.address, b.address);
        m_lines.number(where, "value", a.value, b.value);
        m_lines.number(where, "flags", a.flags, b.flags);
    }

    void semaphore(const std::string& where, const SemaphoreUse& a, const SemaphoreUse& b)
    {
        if (a.semaphore != b.semaphore)
            m_lines.line(where, "", semaphore_text(a.semaphore, m_recorded), semaphore_text(b.semaphore, m_now));
        m_lines.number(where, "value", canonical_value(a), canonical_value(b));
        if (a.slot && b.slot)
            slot(where, *a.slot, *b.slot);
        else
            m_lines.number(where, "slots", int{a.slot.has_value()}, int{b.slot.has_value()});
        m_lines.number(where, "flags", a.flags, b.flags);
    }

    void attributes(const KernelNode& a, const KernelNode& b)
    {
        for (const auto& [id, both] : by_id(a.attributes, b.attributes))
            attribute(fmt::format("{}: {}", m_where, launch_attribute_name(id)), both.first, both.second);
        for (const auto& [id, both] : by_id(a.function_attributes, b.function_attributes)) {
            const std::string where = fmt::format("{}: function's {}", m_where, function_attribute_name(id));
            if (both.first == nullptr)
                m_lines.added(where);
            else if (both.second == nullptr)
                m_lines.gone(where);
            else
                m_lines.number(where, "", both.first->value, both.second->value);
        }
    }

    void attribute(const std::string& where, const Attribute* a, const Attribute* b)
    {
        if (a == nullptr) return m_lines.added(where);
        if (b == nullptr) return m_lines.gone(where);
        const std::string recorded = to_text(*a, m_recorded), now = to_text(*b, m_now);
        const bool same = canonical_value(*a) == canonical_value(*b);
        // The bytes where the short text hides what differs.
        if (!same && a->slots.empty() && b->slots.empty() && recorded != now)
            return m_lines.line(where, "", recorded, now);
        m_lines.bytes(where, "value", canonical_value(*a), canonical_value(*b));
        slots(where, a->slots, b->slots);
    }

    void pitch(std::string_view what, const Pitch& a, const Pitch& b)
    {
        if (a != b) m_lines.line(m_where, what, to_text(a), to_text(b));
    }

    void space(std::string_view what, MemorySpace a, MemorySpace b)
    {
        if (a != b) m_lines.line(m_where, what, to_string(a), to_string(b));
    }

    void event(std::uint32_t a, std::uint32_t b)
    {
        if (a != b) m_lines.line(m_where, "", event_text(a, m_recorded), event_text(b, m_now));
    }

    DifferenceLines& m_lines;
    const Graph& m_recorded;
    const Graph& m_now;
    std::string m_where;
};

} // namespace

void compare_nodes(DifferenceLines& lines, const Graph& recorded, const Graph& now, std::size_t index)
{
    const Node &a = recorded.nodes[index], &b = now.nodes[index];
    if (a == b) return;
    const std::string where = node_name(a, index);
    if (a.index() != b.index()) return lines.line(where, "", node_kind(a), node_name(b, index));
    std::visit([&]<class Work>(
                   const Work& work) { NodeDifference{lines, recorded, now, where}.compare(work, std::get<Work>(b)); },
               a);
}

} // namespace warmgraph::cachefmt
