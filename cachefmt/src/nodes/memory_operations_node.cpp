// Nodes that wait for single words of memory, or write them.
#include <algorithm>

#include <fmt/ranges.h>

#include "check_count.hpp"
#include "cuda_names.hpp"
#include "describe.hpp"
#include "digest_put.hpp"
#include "flat_parse.hpp"
#include "heap_size.hpp"
#include "nodes/box.hpp"
#include "nodes/node_format_of.hpp"

namespace warmgraph::cachefmt {
namespace {

/// The kind's name, e.g. "wait_32"; "unknown" if out of range.
std::string_view operation_kind(MemoryOperationKind kind) noexcept
{
    switch (kind) {
    case MemoryOperationKind::wait_32: return "wait_32";
    case MemoryOperationKind::write_32: return "write_32";
    case MemoryOperationKind::flush_remote_writes: return "flush_remote_writes";
    case MemoryOperationKind::wait_64: return "wait_64";
    case MemoryOperationKind::write_64: return "write_64";
    case MemoryOperationKind::barrier: return "barrier";
    }
    return "unknown";
}

/// Returns e.g. "wait until flag + 8 >= 1", "write 3 to flag" or "barrier of the device". For an operation on 64 bits,
/// the text says so.
std::string operation_text(const MemoryOperation& operation, const Graph& graph)
{
    using enum MemoryOperationKind;
    const std::string address = to_text(operation.address, graph);
    const std::string_view bits = width_of(operation.kind) == 8 ? " (64 bits)" : "";
    switch (operation.kind) {
    case wait_32:
    case wait_64: {
        static constexpr std::string_view k_comparisons[] = {">=", "==", "&", "nor"};
        return fmt::format("wait until {} {} {:#x}{}{}", address, k_comparisons[operation.flags & k_wait_comparison],
                           operation.value, bits, (operation.flags & k_wait_flush) != 0 ? ", then flush" : "");
    }
    case write_32:
    case write_64:
        return fmt::format("write {:#x} to {}{}{}", operation.value, address, bits,
                           operation.flags == k_write_without_barrier ? " without barrier" : "");
    case barrier: return operation.flags == k_barrier_of_device ? "barrier of the device" : "barrier of the system";
    case flush_remote_writes: return "flush of remote writes";
    }
    return fmt::format("operation {}", static_cast<int>(operation.kind));
}

std::uint32_t known_flags(MemoryOperationKind kind) noexcept
{
    switch (kind) {
    case MemoryOperationKind::wait_32:
    case MemoryOperationKind::wait_64: return k_wait_comparison | k_wait_flush;
    case MemoryOperationKind::write_32:
    case MemoryOperationKind::write_64: return k_write_without_barrier;
    case MemoryOperationKind::barrier: return k_barrier_of_device;
    case MemoryOperationKind::flush_remote_writes: break;
    }
    return 0;
}

/// The driver accepts aligned words only.
Result<void> check_operation(const MemoryOperation& operation, const Graph& graph)
{
    using enum MemoryOperationKind;
    const MemoryOperationKind kind = operation.kind;
    if (kind < wait_32 || kind > barrier) return fail(ErrorCode::corrupt, "kind {} is unknown", static_cast<int>(kind));
    if ((operation.flags & ~known_flags(kind)) != 0)
        return fail(ErrorCode::corrupt, "flags {:#x} are not known for {}", operation.flags, operation_kind(kind));
    const std::uint32_t width = width_of(kind);
    if (width == 0 && (operation.address != Slot{} || operation.value != 0))
        return fail(ErrorCode::corrupt, "a {} has neither address nor value", operation_kind(kind));
    if (width == 0) return {};
    if (width == 4 && operation.value > 0xFFFF'FFFFULL)
        return fail(ErrorCode::corrupt, "value {:#x} does not fit 4 bytes", operation.value);
    if (auto ok = check_end("address", operation.address, {width, 1, 1, {}}, graph); !ok) return ok;
    if (operation.address.addend % width != 0)
        return fail(ErrorCode::corrupt, "addend {} is not a multiple of the word's {} bytes", operation.address.addend,
                    width);
    return kind == write_32 || kind == write_64 ? check_writable(operation.address, graph) : Result<void>{};
}

void compare_operations(const NodeDifference& out, const MemoryOperation& a, const MemoryOperation& b)
{
    if (a.kind != b.kind) return out.line("", operation_text(a, out.recorded()), operation_text(b, out.now()));
    out.slot(a.address, b.address);
    out.number("value", a.value, b.value);
    out.number("flags", a.flags, b.flags);
}

MemoryOperation to_operation(const flat::MemoryOperation& operation)
{
    return {static_cast<MemoryOperationKind>(operation.kind()),
            operation.address() == nullptr ? Slot{} : to_slot(*operation.address()), operation.value(),
            operation.flags()};
}

struct MemoryOperationsFormat {
    using Work = MemoryOperationsNode;
    using Flat = flat::MemoryOperations;

    static std::string_view kind(const Work&) noexcept { return "memory operations"; }
    static void digest(Sha256& hash, const Work& node);
    static void compare(const NodeDifference& out, const Work& a, const Work& b);
    static Result<void> validate(const Work& node, const Graph& graph, const Limits& limits);
    static std::uint64_t footprint(const Work& node) noexcept
    {
        return items_size<MemoryOperation>(node.operations.size());
    }

    static flatbuffers::Offset<Flat> to_flat(FlatBuilder& builder, const Work& node);
    static Result<void> check_flat(const Flat& node, const Limits& limits)
    {
        return check_count("operations", count(node.operations()), limits.operations_per_node);
    }
    static std::uint64_t flat_footprint(const Flat& node)
    {
        return items_size<MemoryOperation>(count(node.operations()));
    }
    static Work from_flat(const Flat& node) { return {to_vector<MemoryOperation>(node.operations(), to_operation)}; }

    static void json(Json& out, const Work& node, const Graph& graph);
    static NodeRow row(const Work& node, const Graph& graph)
    {
        return {.parameters = fmt::format("{}", fmt::join(texts(node, graph), ", "))};
    }
    static std::vector<std::string> label(const Work& node, const Graph& graph)
    {
        auto lines = texts(node, graph);
        lines.insert(lines.begin(), "memory operations");
        return lines;
    }

private:
    static std::vector<std::string> texts(const Work& node, const Graph& graph)
    {
        std::vector<std::string> all;
        for (const MemoryOperation& operation : node.operations) all.push_back(operation_text(operation, graph));
        return all;
    }
};

void MemoryOperationsFormat::digest(Sha256& hash, const MemoryOperationsNode& node)
{
    put_count(hash, node.operations.size());
    for (const MemoryOperation& operation : node.operations) {
        put(hash, operation.kind);
        put(hash, operation.address);
        put(hash, operation.value);
        put(hash, operation.flags);
    }
}

void MemoryOperationsFormat::compare(const NodeDifference& out, const MemoryOperationsNode& a,
                                     const MemoryOperationsNode& b)
{
    out.number("operations", a.operations.size(), b.operations.size());
    for (std::size_t i = 0; i < std::min(a.operations.size(), b.operations.size()); ++i)
        compare_operations(out.part(fmt::format("operation {}", i)), a.operations[i], b.operations[i]);
}

Result<void> MemoryOperationsFormat::validate(const MemoryOperationsNode& node, const Graph& graph,
                                              const Limits& limits)
{
    if (node.operations.empty() || node.operations.size() > limits.operations_per_node)
        return fail(ErrorCode::corrupt, "{} operations, expected 1 to {}", node.operations.size(),
                    limits.operations_per_node);
    for (std::size_t i = 0; i < node.operations.size(); ++i)
        if (auto ok = check_operation(node.operations[i], graph); !ok)
            return within(fmt::format("operation {}", i), std::move(ok.error()));
    return {};
}

flatbuffers::Offset<flat::MemoryOperations> MemoryOperationsFormat::to_flat(FlatBuilder& builder,
                                                                            const MemoryOperationsNode& node)
{
    const auto operations = write_tables(builder, node.operations, [&](const MemoryOperation& operation) {
        const bool has_address = width_of(operation.kind) != 0 || operation.address != Slot{};
        const auto address = has_address ? write(builder, operation.address) : flatbuffers::Offset<flat::Slot>{};
        return flat::CreateMemoryOperation(builder, static_cast<flat::MemoryOperationKind>(operation.kind), address,
                                           operation.value, operation.flags);
    });
    return flat::CreateMemoryOperations(builder, operations);
}

void MemoryOperationsFormat::json(Json& out, const MemoryOperationsNode& node, const Graph& graph)
{
    set_list(out, "operations", node.operations, [&](Json& item, const MemoryOperation& operation) {
        set_text(item, "kind", operation_kind(operation.kind));
        if (width_of(operation.kind) != 0)
            set_slot(item, "address", operation.address, graph);
        else
            set_null(item, "address");
        set_number(item, "value", operation.value);
        set_number(item, "flags", operation.flags);
        set_text(item, "text", operation_text(operation, graph));
    });
}

} // namespace

const NodeFormat& format_of(std::type_identity<MemoryOperationsNode>) noexcept
{
    static const NodeFormatOf<MemoryOperationsFormat> format;
    return format;
}

} // namespace warmgraph::cachefmt
