#include "slots.hpp"

namespace warmgraph::cachefmt {
namespace {

struct Slots {
    const std::function<void(Slot&)>& visit;

    void operator()(EmptyNode&) const {}
    void operator()(EventRecordNode&) const {}
    void operator()(EventWaitNode&) const {}
    void operator()(HostNode&) const {}
    void operator()(KernelNode& node) const
    {
        for (Param& param : node.params)
            for (Slot& slot : param.slots) visit(slot);
        for (Attribute& attribute : node.attributes)
            for (Slot& slot : attribute.slots) visit(slot);
    }
    void operator()(CopyNode& node) const
    {
        visit(node.source);
        visit(node.destination);
    }
    void operator()(FillNode& node) const { visit(node.destination); }
    void operator()(MemoryOperationsNode& node) const
    {
        for (MemoryOperation& operation : node.operations)
            if (width_of(operation.kind) != 0) visit(operation.address); // barriers have no address
    }
    void operator()(SemaphoresNode& node) const
    {
        for (SemaphoreUse& use : node.uses)
            if (use.slot) visit(*use.slot);
    }
};

} // namespace

void for_each_slot(Node& node, const std::function<void(Slot&)>& visit) { std::visit(Slots{visit}, node); }

} // namespace warmgraph::cachefmt
