// A graph with concrete addresses: what a capture yields and what a device instantiates. cachefmt::Graph is the same
// with slots; replay/ turns one into the other.
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

/// What messages call a kind of node, and whom its work reaches. Each kind has one, k_kind.
struct WorkKind {
    std::string_view name;   ///< "event record"
    std::string_view family; ///< of kinds that a backend has or lacks together: "event"
    bool is_outside = false; ///< all of it is outside work (has_outside_work)
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

/// Ids of attributes that a launch through this library may have: CUlaunchAttributeID, which entries store.
namespace launch_attribute {
inline constexpr std::uint32_t k_cooperative = 2;                ///< std::int32_t, 1: on
inline constexpr std::uint32_t k_cluster_dimension = 4;          ///< three std::uint32_t
inline constexpr std::uint32_t k_programmatic_serialization = 6; ///< std::int32_t, 1: on
} // namespace launch_attribute

struct RawKernel {
    static constexpr WorkKind k_kind{"kernel", "kernel"};
    Module* module = nullptr; ///< outlives the graph and every exec made of it
    std::string kernel;
    Dim3 grid{1, 1, 1};  ///< work-groups
    Dim3 block{1, 1, 1}; ///< work-items of a group
    std::vector<RawParam> params;
    std::uint32_t shared_bytes = 0;
    bool packed = false;                                  ///< params is one value: the whole parameter buffer
    std::vector<RawAttribute> attributes{};               ///< by id, unique
    std::vector<FunctionAttribute> function_attributes{}; ///< by id, unique
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

/// `event`: the driver's handle (CUevent), which outlives the graph.
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

/// A call of `function(data)` on a driver's thread.
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

/// See cachefmt::SemaphoreUse. `semaphore`: the driver's handle (CUexternalSemaphore), which outlives the graph.
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

/// Same order as cachefmt::Node.
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

/// Memory that a captured graph allocated and freed by itself: an address range of this capture only.
struct RawAllocation {
    MemoryRef memory;
    bool operator==(const RawAllocation&) const = default;
};

struct RawGraph {
    std::vector<RawNode> nodes; ///< topological order
    /// In the order in which the graph makes them, none overlapping another (merged). Their allocation nodes became
    /// empty nodes, as did those that freed them: they become arena.
    std::vector<RawAllocation> allocations{};
    /// What the addresses in `allocations` belong to: while it lives, no other capture is given them. Not compared.
    std::shared_ptr<const void> owner{};
    /// The driver's own graph of this capture (CUgraph), which lives as long as this does: Recording::instantiate_captured
    /// runs it. Null where there is none, and once nodes were replaced (without_outside). Not compared.
    std::shared_ptr<const void> native{};
    bool operator==(const RawGraph& other) const { return nodes == other.nodes && allocations == other.allocations; }
};

/// `made`: what a graph allocates, in its nodes' order. The driver may give the memory of an earlier allocation to a
/// later one: both are one then, as early as the earlier. Where the driver puts them changes from capture to capture,
/// and their order with it would.
[[nodiscard]] std::vector<RawAllocation> merged(const std::vector<RawAllocation>& made);

/// The same bytes in the same order, spelled in one way: rows without a gap are one row, a pattern is as short as can
/// be. Drivers choose among spellings by the alignment of what is copied or filled.
[[nodiscard]] RawCopy canonical(RawCopy copy) noexcept;
[[nodiscard]] RawFill canonical(RawFill fill);
/// Bytes of the shortest pattern that gives the same bytes.
[[nodiscard]] std::size_t period(ByteView pattern) noexcept;

/// Whether somebody outside the graph may take part in it or notice that it runs: semaphores, host functions, events
/// that are recorded or waited for, memory operations that wait. Writes of memory operations do not count
/// (without_outside).
[[nodiscard]] bool has_outside_work(const RawGraph& graph) noexcept;
/// Without that: what may run on copies and always ends. Nodes become empty ones. A batch of memory operations loses
/// its waits and keeps the rest: what it writes lies in the graph's regions, so on copies nobody outside sees it, and a
/// graph without it would leave other contents. A batch of waits only becomes an empty node.
///
/// A wait that the same graph answers in another branch orders the two branches. Here they are unordered.
[[nodiscard]] RawGraph without_outside(RawGraph graph);

/// Whether a kernel is NCCL's: it waits for other processes, and its communicator's pointers mean nothing in another
/// one.
[[nodiscard]] bool has_collectives(const RawGraph& graph) noexcept;

} // namespace warmgraph::backends
