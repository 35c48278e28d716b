#include "describe.hpp"

#include <bit>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cuda_names.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::cachefmt {
namespace {

std::string signed_text(std::int64_t addend)
{
    if (addend == 0) return {};
    const auto magnitude = addend < 0 ? 0 - static_cast<std::uint64_t>(addend) : static_cast<std::uint64_t>(addend);
    return fmt::format(" {} {}", addend < 0 ? '-' : '+', magnitude);
}

/// "8 B 0011223344556677", "16 B {0: kv, 8: position + 1}"
std::string bytes_text(const Bytes& value, const std::vector<Slot>& slots, const Graph& graph)
{
    std::string text = fmt::format("{} B", value.size());
    if (slots.empty()) return text + " " + hex(value, 8);
    for (const Slot& slot : slots)
        text += fmt::format("{}{}: {}", &slot == slots.data() ? " {" : ", ", slot.offset, to_text(slot, graph));
    return text + "}";
}

} // namespace

std::string_view to_string(RegionKind kind) noexcept
{
    switch (kind) {
    case RegionKind::input: return "input";
    case RegionKind::output: return "output";
    case RegionKind::state: return "state";
    case RegionKind::weights: return "weights";
    case RegionKind::arena: return "arena";
    case RegionKind::constant: return "constant";
    }
    return "unknown";
}

std::string_view to_string(EntryKind kind) noexcept
{
    switch (kind) {
    case EntryKind::graph: return "graph";
    case EntryKind::tombstone: return "tombstone";
    }
    return "unknown";
}

std::string_view to_string(ParamKind kind) noexcept
{
    switch (kind) {
    case ParamKind::value: return "value";
    case ParamKind::memory: return "memory";
    case ParamKind::local: return "local";
    }
    return "unknown";
}

std::string_view to_string(MemorySpace space) noexcept
{
    switch (space) {
    case MemorySpace::device: return "device";
    case MemorySpace::host: return "host";
    }
    return "unknown";
}

std::string_view to_string(MemoryOperationKind kind) noexcept
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

std::string_view to_string(SemaphoreAction action) noexcept
{
    switch (action) {
    case SemaphoreAction::signal: return "signal";
    case SemaphoreAction::wait: return "wait";
    }
    return "unknown";
}

std::string_view node_kind(const Node& node) noexcept
{
    static constexpr std::string_view k_names[] = {
        "empty", "kernel", "copy", "fill", "event record", "event wait", "host", "memory operations", "semaphores"};
    static_assert(std::size(k_names) == std::variant_size_v<Node>);
    if (const auto* semaphores = std::get_if<SemaphoresNode>(&node)) {
        if (semaphores->action == SemaphoreAction::signal) return "semaphore signal";
        if (semaphores->action == SemaphoreAction::wait) return "semaphore wait";
    }
    return k_names[node.index()];
}

std::string to_text(const Dim3& dim) { return fmt::format("{}", fmt::join(dim, ",")); }

std::string to_text(const Slot& slot, const Graph& graph)
{
    const bool region = slot.kind == SlotKind::region;
    const std::size_t count = region ? graph.regions.size() : graph.scalars.size();
    if (slot.target >= count)
        return fmt::format("{} {}{}", region ? "region" : "scalar", slot.target, signed_text(slot.addend));
    const std::string& name = region ? graph.regions[slot.target].name : graph.scalars[slot.target].name;
    return printable(name) + signed_text(slot.addend);
}

std::string to_text(const Param& param, const Graph& graph)
{
    if (param.kind == ParamKind::local) return fmt::format("local {} B", param.local_size);
    if (param.kind == ParamKind::memory && param.slots.size() == 1) return to_text(param.slots[0], graph);
    const bool whole =
        param.slots.size() == 1 && param.slots[0].offset == 0 && param.slots[0].width == param.value.size();
    if (whole) return to_text(param.slots[0], graph);
    return bytes_text(param.value, param.slots, graph);
}

std::string to_text(const EdgeData& data)
{
    if (data == EdgeData{}) return "plain";
    std::string text;
    const auto word = [&](const std::string& more) { text += (text.empty() ? "" : " ") + more; };
    if (data.type == 1) word("programmatic");
    if (data.type > 1) word(fmt::format("type {}", data.type));
    if (data.from_port == 2) word("from launch");
    if (data.from_port > 2 || (data.from_port == 1 && data.type != 1))
        word(fmt::format("from port {}", data.from_port));
    if (data.type == 1 && data.from_port == 0) word("from port 0");
    if (data.to_port != 0) word(fmt::format("to port {}", data.to_port));
    return text;
}

std::string to_text(const Attribute& attribute, const Graph& graph)
{
    const ByteView value = attribute.value;
    if (attribute.slots.empty() && is_three_numbers(attribute.id) && value.size() >= sizeof(Dim3))
        return to_text(load<Dim3>(value, 0));
    if (attribute.slots.empty() && is_one_number(attribute.id) && value.size() >= sizeof(std::int32_t))
        return fmt::format("{}", load<std::int32_t>(value, 0));
    return bytes_text(attribute.value, attribute.slots, graph);
}

std::string to_text(const MemoryOperation& operation, const Graph& graph)
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

std::string to_text(const SemaphoreUse& use, SemaphoreAction action, const Graph& graph)
{
    // Four bytes of eight: the upper half is a constant that is hardly ever there.
    const std::uint64_t upper = use.slot && use.slot->width == 4 ? use.value >> 32 : 0;
    const std::string value = use.slot ? to_text(*use.slot, graph) : fmt::format("{}", use.value);
    return fmt::format(
        "{} {} {}{}{}", semaphore_text(use.semaphore, graph), action == SemaphoreAction::wait ? ">=" : "=", value,
        upper != 0 ? fmt::format(" + {:#x} * 2^32", upper) : "", use.flags != 0 ? ", no memory synchronisation" : "");
}

std::string to_text(const Pitch& pitch)
{
    return pitch.slice == 0 ? fmt::format("{}", pitch.row) : fmt::format("{}/{}", pitch.row, pitch.slice);
}

std::string event_text(std::uint32_t event, const Graph& graph)
{
    return event < graph.events.size() ? printable(graph.events[event]) : fmt::format("event {}", event);
}

std::string semaphore_text(std::uint32_t semaphore, const Graph& graph)
{
    return semaphore < graph.semaphores.size() ? printable(graph.semaphores[semaphore])
                                               : fmt::format("semaphore {}", semaphore);
}

std::string box_size(std::uint64_t size, std::uint64_t rows, std::uint64_t slices)
{
    std::string text = human_size(size);
    if (rows != 1 || slices != 1) text = fmt::format("{} row{} of {}", rows, rows == 1 ? "" : "s", text);
    return slices == 1 ? text : fmt::format("{} slices of {}", slices, text);
}

std::string node_name(const Node& node, std::size_t index)
{
    if (const auto* kernel = std::get_if<KernelNode>(&node))
        return fmt::format("kernel {} (node {})", readable_kernel_name(kernel->kernel), index);
    return fmt::format("{} (node {})", node_kind(node), index);
}

std::string hex(ByteView bytes, std::size_t most)
{
    std::string text;
    for (const std::byte byte : bytes.first(std::min(most, bytes.size())))
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    if (bytes.size() > most) text += "...";
    return text;
}

std::string human_size(std::uint64_t bytes)
{
    if (bytes < 1024) return fmt::format("{} B", bytes);
    static constexpr const char* k_units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
    double size = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; size >= 1023.5 && unit + 1 < std::size(k_units); size /= 1024) ++unit;
    return size < 9.95 ? fmt::format("{:.1f} {}", size, k_units[unit]) : fmt::format("{:.0f} {}", size, k_units[unit]);
}

std::string value_text(const ValueSpec& value)
{
    const std::uint64_t bits = value.bits;
    switch (value.dtype) {
    case DType::boolean: return bits == 0 ? "false" : "true";
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64: return fmt::format("{}", bits);
    case DType::i8: return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(bits)));
    case DType::i16: return fmt::format("{}", static_cast<std::int16_t>(bits));
    case DType::i32: return fmt::format("{}", static_cast<std::int32_t>(bits));
    case DType::i64: return fmt::format("{}", static_cast<std::int64_t>(bits));
    case DType::f32: return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case DType::f64: return fmt::format("{}", std::bit_cast<double>(bits));
    case DType::f16:
    case DType::bf16: break;
    }
    return fmt::format("{:#06x}", bits);
}

} // namespace warmgraph::cachefmt
