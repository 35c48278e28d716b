// A graph with concrete addresses: captures produce it and devices instantiate it. cachefmt::Graph is the same with
// slots; replay/ converts one into the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "warmgraph/backends/address.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::backends {

using cachefmt::Dim3;
using cachefmt::EdgeData;
using cachefmt::FunctionAttribute;
using cachefmt::MemoryOperationKind;
using cachefmt::MemorySpace;
using cachefmt::ParamKind;
using cachefmt::Pitch;
using cachefmt::SemaphoreAction;

class Module;

/// Properties of a kind of node. Each kind has a member k_kind with its properties.
struct WorkKind {
    std::string_view name;   ///< "event record"
    std::string_view family; ///< "event": a backend supports all kinds of a family or none
    bool is_outside = false; ///< such a node always counts as outside work (has_outside_work)
};

struct RawParam {
    ParamKind kind = ParamKind::value;
    Bytes value;                  ///< ParamKind::value
    Address address;              ///< ParamKind::memory
    std::uint64_t local_size = 0; ///< ParamKind::local
    bool operator==(const RawParam&) const = default;
};

/// See cachefmt::Attribute.
struct RawAttribute {
    std::uint32_t id = 0;
    Bytes value;
    bool operator==(const RawAttribute&) const = default;
};

/// Ids of launch attributes that this library can set (CUlaunchAttributeID). Entries store them.
namespace launch_attribute {
inline constexpr std::uint32_t k_cooperative = 2;                ///< std::int32_t, 1: on
inline constexpr std::uint32_t k_cluster_dimension = 4;          ///< three std::uint32_t
inline constexpr std::uint32_t k_programmatic_serialization = 6; ///< std::int32_t, 1: on
} // namespace launch_attribute

struct RawKernel {
    static constexpr WorkKind k_kind{"kernel", "kernel"};
    Module* module = nullptr; ///< outlives the graph and its execs
    std::string kernel;
    Dim3 grid{1, 1, 1};  ///< work-groups
    Dim3 block{1, 1, 1}; ///< work-items of a group
    std::vector<RawParam> params;
    std::uint32_t shared_bytes = 0;
    bool packed = false;                                  ///< params is one value: the whole parameter buffer
    std::vector<RawAttribute> attributes{};               ///< sorted by id, unique
    std::vector<FunctionAttribute> function_attributes{}; ///< sorted by id, unique
    bool operator==(const RawKernel&) const = default;
};

struct RawCopy {
    static constexpr WorkKind k_kind{"copy", "copy"};
    Address source, destination;
    std::uint64_t size = 0; ///< bytes of one row
    std::uint64_t rows = 1, slices = 1;
    Pitch source_pitch{}, destination_pitch{};
    MemorySpace source_space = MemorySpace::device, destination_space = MemorySpace::device;
    bool operator==(const RawCopy&) const = default;
};

struct RawFill {
    static constexpr WorkKind k_kind{"fill", "fill"};
    Address destination;
    Bytes pattern;
    std::uint64_t size = 0; ///< bytes of one row
    std::uint64_t rows = 1;
    std::uint64_t pitch = 0;
    bool operator==(const RawFill&) const = default;
};

struct RawEmpty {
    static constexpr WorkKind k_kind{"empty", "empty"};
    bool operator==(const RawEmpty&) const = default;
};

/// `event` is the driver's handle (CUevent), which outlives the graph.
struct RawEventRecord {
    static constexpr WorkKind k_kind{"event record", "event", true};
    std::uint64_t event = 0;
    bool operator==(const RawEventRecord&) const = default;
};

struct RawEventWait {
    static constexpr WorkKind k_kind{"event wait", "event", true};
    std::uint64_t event = 0;
    bool operator==(const RawEventWait&) const = default;
};

/// Calls `function(data)` on a driver's thread.
struct RawHost {
    static constexpr WorkKind k_kind{"host function", "host", true};
    void (*function)(void*) = nullptr;
    void* data = nullptr;
    bool operator==(const RawHost&) const = default;
};

/// See cachefmt::MemoryOperation.
struct RawMemoryOperation {
    MemoryOperationKind kind = MemoryOperationKind::wait_32;
    Address address;
    std::uint64_t value = 0;
    std::uint32_t flags = 0;
    bool operator==(const RawMemoryOperation&) const = default;
};

struct RawMemoryOperations {
    static constexpr WorkKind k_kind{"memory operations", "memory operation"};
    std::vector<RawMemoryOperation> operations;
    bool operator==(const RawMemoryOperations&) const = default;
};

/// See cachefmt::SemaphoreUse. `semaphore` is the driver's handle (CUexternalSemaphore), which outlives the graph.
struct RawSemaphore {
    std::uint64_t semaphore = 0;
    std::uint64_t value = 0;
    std::uint32_t flags = 0;
    bool operator==(const RawSemaphore&) const = default;
};

struct RawSemaphores {
    static constexpr WorkKind k_kind{"semaphores", "semaphore", true};
    SemaphoreAction action = SemaphoreAction::signal;
    std::vector<RawSemaphore> uses;
    bool operator==(const RawSemaphores&) const = default;
};

/// The order is that of cachefmt::Node.
using RawWork = std::variant<RawEmpty, RawKernel, RawCopy, RawFill, RawEventRecord, RawEventWait, RawHost,
                             RawMemoryOperations, RawSemaphores>;

[[nodiscard]] inline const WorkKind& kind_of(const RawWork& work) noexcept
{
    return std::visit([](const auto& one) -> const WorkKind& { return one.k_kind; }, work);
}

struct RawNode {
    RawWork work;
    std::vector<std::uint32_t> dependencies; ///< indices of earlier nodes, sorted, unique
    std::vector<EdgeData> edges{};           ///< empty when all are plain, else one for each dependency
    bool operator==(const RawNode&) const = default;
};

/// Memory that a captured graph allocates and frees itself: its addresses are valid in this capture only.
struct RawAllocation {
    MemoryRef memory;
    bool operator==(const RawAllocation&) const = default;
};

struct RawGraph {
    std::vector<RawNode> nodes; ///< topological order
    /// The graph's own allocations, in the order in which the graph makes them, without overlaps (merged). Entries
    /// store them as arenas. The nodes that allocated and freed them became empty nodes.
    std::vector<RawAllocation> allocations{};
    /// Owns the addresses in `allocations`: while it lives, no other capture gets them. Not compared.
    std::shared_ptr<const void> owner{};
    /// The driver's own graph of this capture (CUgraph), kept while this RawGraph lives, for
    /// DeviceRecording::instantiate_captured. Null if there is none, and after nodes were replaced (without_outside). Not
    /// compared.
    std::shared_ptr<const void> native{};
    bool operator==(const RawGraph& other) const { return nodes == other.nodes && allocations == other.allocations; }
};

/// Joins allocations that overlap, because the driver may reuse an earlier allocation's memory. `made` and the result
/// are in the order of the nodes: an order by address would differ from capture to capture.
[[nodiscard]] std::vector<RawAllocation> merged(const std::vector<RawAllocation>& made);

/// Returns one form for all copies (or fills) that write the same bytes in the same order: rows without a gap become
/// one row, and the pattern is as short as possible. Drivers choose the form by the alignment of the memory.
[[nodiscard]] RawCopy canonical(RawCopy copy) noexcept;
[[nodiscard]] RawFill canonical(RawFill fill);
/// Returns the size in bytes of the shortest pattern that gives the same bytes.
[[nodiscard]] std::size_t period(ByteView pattern) noexcept;

/// True if the graph interacts with the outside: semaphores, host functions, recorded or awaited events, memory
/// operations that wait. Writes of memory operations do not count (without_outside).
[[nodiscard]] bool has_outside_work(const RawGraph& graph) noexcept;
/// Makes the nodes of outside work empty, so that the graph always ends and can run on copies of its memory. A batch of
/// memory operations loses its waits and keeps its writes: the writes go to the graph's regions, so on copies nothing
/// outside sees them, and without them the contents would differ.
///
/// Two branches that only such a wait ordered are unordered in the result.
[[nodiscard]] RawGraph without_outside(RawGraph graph);

/// True if the graph has a kernel of NCCL. Such a kernel waits for other processes, and its communicator's pointers are
/// invalid in another process.
[[nodiscard]] bool has_collectives(const RawGraph& graph) noexcept;

} // namespace warmgraph::backends
