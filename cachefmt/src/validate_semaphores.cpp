// Semaphores: which ones, and what their values follow.
#include "cuda_names.hpp"
#include "describe.hpp"
#include "validate_node.hpp"
#include "validate_slot.hpp"

namespace warmgraph::cachefmt {
namespace {

Result<void> check_slot(const Slot& slot, const Graph& graph)
{
    // An address would tell the world outside where this process has its memory, and mean nothing there.
    if (slot.kind != SlotKind::scalar || slot.offset != 0)
        return fail(ErrorCode::corrupt, "its value follows no scalar at offset 0");
    if (auto ok = validate_slot(slot, Reach::inside, graph); !ok) return ok;
    switch (const Scalar& scalar = graph.scalars[slot.target]; scalar.type) {
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64: return {};
    default:
        return fail(ErrorCode::corrupt, "its value follows the scalar '{}' of type {}, expected an integer",
                    printable(scalar.name), warmgraph::to_string(scalar.type));
    }
}

Result<void> check_use(const SemaphoreUse& use, SemaphoreAction action, const Graph& graph)
{
    if (use.semaphore >= graph.semaphores.size())
        return fail(ErrorCode::corrupt, "index {} is out of range, the graph has {}", use.semaphore,
                    graph.semaphores.size());
    const std::uint32_t known = action == SemaphoreAction::signal ? k_signal_skip_memsync : k_wait_skip_memsync;
    if ((use.flags & ~known) != 0)
        return fail(ErrorCode::corrupt, "flags {:#x} are unknown to a {}", use.flags, to_string(action));
    return use.slot ? check_slot(*use.slot, graph) : Result<void>{};
}

} // namespace

Result<void> validate_semaphores(const SemaphoresNode& node, const Graph& graph, const Limits& limits)
{
    if (node.action != SemaphoreAction::signal && node.action != SemaphoreAction::wait)
        return fail(ErrorCode::corrupt, "action {} is unknown", static_cast<int>(node.action));
    if (node.uses.empty() || node.uses.size() > limits.semaphores_per_node)
        return fail(ErrorCode::corrupt, "{} semaphores, expected 1 to {}", node.uses.size(),
                    limits.semaphores_per_node);
    for (std::size_t i = 0; i < node.uses.size(); ++i)
        if (auto ok = check_use(node.uses[i], node.action, graph); !ok)
            return within(fmt::format("semaphore {}", i), std::move(ok.error()));
    return {};
}

} // namespace warmgraph::cachefmt
