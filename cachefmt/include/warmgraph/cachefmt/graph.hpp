// The graph model: the work of a function, with slots and names but never addresses. Enum values are stored: they are
// explicit, and new ones are only appended.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/dtype.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::cachefmt {

enum class RegionKind : std::uint8_t {
    input = 0,    ///< memory of the caller that the graph reads
    output = 1,   ///< memory of the caller that the graph writes
    state = 2,    ///< memory of the caller whose contents live across calls (KV cache)
    weights = 3,  ///< memory of the caller that is only read and lives across calls
    arena = 4,    ///< scratch, owned by the replayed entry; contents undefined at the start of a launch
    constant = 5, ///< contents stored in the entry
};

enum class MemorySpace : std::uint8_t {
    device = 0,
    host = 1, ///< page-locked host memory that the device can address
};

/// A range of device memory that the graph touches.
struct Region {
    std::string name;
    RegionKind kind = RegionKind::input;
    std::uint64_t size = 0;      ///< bytes
    std::uint32_t alignment = 1; ///< bytes, a power of two: the alignment of the region's address
    Bytes contents;              ///< `constant` only, `size` bytes
    MemorySpace space = MemorySpace::device;
    /// `constant` only: SHA-256 of the contents if they are stored outside the entry, as images are (`contents` is then
    /// empty); else 0.
    Digest digest{};
    /// `constant` only: each executable gets its own copy, because the graph's work may write to memory that was not
    /// declared.
    bool exclusive = false;
    /// `constant` only: index of the arena that contains this region, `inside_offset` bytes from the arena's start.
    /// Such a region holds scratch contents from capture time that the graph reads.
    std::optional<std::uint32_t> inside{};
    std::uint64_t inside_offset = 0;
    bool operator==(const Region&) const = default;
};

/// A host value that may change from call to call without a new recording.
struct Scalar {
    std::string name;
    DType type = DType::i32;
    bool operator==(const Scalar&) const = default;
};

enum class SlotKind : std::uint8_t {
    region = 0, ///< the address of regions[target] + addend; in a value, this address may lie outside the region
    scalar = 1, ///< value of scalars[target] + addend (addend 0 for floats), `width` bytes
};

/// A place in a parameter's bytes that is filled at bind time.
struct Slot {
    SlotKind kind = SlotKind::region;
    std::uint32_t target = 0;
    std::uint32_t offset = 0; ///< byte offset in the parameter's value; 0 for a memory parameter
    std::uint8_t width = 8;   ///< bytes: 4 or 8
    std::int64_t addend = 0;  ///< bytes, for a region; for a scalar, a number that is added to its value
    bool operator==(const Slot&) const = default;
};

enum class ParamKind : std::uint8_t {
    value = 0,  ///< `value` with slots patched in
    memory = 1, ///< one memory object (OpenCL `cl_mem`): exactly one region slot, no bytes
    local = 2,  ///< `local_size` bytes of work-group memory
};

struct Param {
    ParamKind kind = ParamKind::value;
    Bytes value; ///< the bytes under a slot are ignored
    std::uint64_t local_size = 0;
    std::vector<Slot> slots; ///< for `value`: sorted by offset, not overlapping
    bool operator==(const Param&) const = default;
};

using Dim3 = std::array<std::uint32_t, 3>;

/// A launch attribute as the driver holds it (CUDA: CUlaunchAttributeID and the used bytes of CUlaunchAttributeValue).
struct Attribute {
    std::uint32_t id = 0;
    Bytes value;             ///< the bytes under a slot are ignored
    std::vector<Slot> slots; ///< sorted by offset; e.g. the address of an access-policy window
    bool operator==(const Attribute&) const = default;
};

/// A property that the loaded kernel must have before it is launched (CUDA: CUfunction_attribute).
struct FunctionAttribute {
    std::uint32_t id = 0;
    std::int32_t value = 0;
    auto operator<=>(const FunctionAttribute&) const = default;
};

/// A kernel launch: `grid` work-groups (thread blocks) of `block` work-items (threads).
struct KernelNode {
    std::uint32_t image = 0; ///< index into Graph::images
    std::string kernel;
    Dim3 grid{1, 1, 1};
    Dim3 block{1, 1, 1};
    std::vector<Param> params;           ///< one for each kernel argument, in order; with `packed` a single value
    std::uint32_t shared_bytes = 0;      ///< dynamic shared memory
    bool packed = false;                 ///< params[0] is the whole parameter buffer (CUDA's `extra` form)
    std::vector<Attribute> attributes{}; ///< sorted by id, unique
    std::vector<FunctionAttribute> function_attributes{}; ///< sorted by id, unique
    bool operator==(const KernelNode&) const = default;
};

/// Distances between rows and slices of a box that is copied or filled. All zero for a plain range.
struct Pitch {
    std::uint64_t row = 0;   ///< bytes from one row to the next
    std::uint64_t slice = 0; ///< bytes from one slice to the next, a multiple of `row`
    auto operator<=>(const Pitch&) const = default;
};

struct CopyNode {
    Slot source;
    Slot destination;
    std::uint64_t size = 0;             ///< bytes of one row
    std::uint64_t rows = 1, slices = 1; ///< more than one row: 2D; more than one slice: 3D
    Pitch source_pitch{}, destination_pitch{};
    MemorySpace source_space = MemorySpace::device, destination_space = MemorySpace::device;
    bool operator==(const CopyNode&) const = default;
};

struct FillNode {
    Slot destination;
    Bytes pattern;          ///< 1, 2, 4, 8 or 16 bytes
    std::uint64_t size = 0; ///< bytes of one row, a multiple of the pattern's size
    std::uint64_t rows = 1;
    std::uint64_t pitch = 0; ///< bytes from one row to the next; 0 for one row
    bool operator==(const FillNode&) const = default;
};

/// Records events[event], which work outside the graph may wait for.
struct EventRecordNode {
    std::uint32_t event = 0;
    bool operator==(const EventRecordNode&) const = default;
};

/// Waits for events[event], which work outside the graph or an earlier node records.
struct EventWaitNode {
    std::uint32_t event = 0;
    bool operator==(const EventWaitNode&) const = default;
};

/// Calls a host function that the process registered under this name (backends/host_functions.hpp).
struct HostNode {
    std::string function;
    bool operator==(const HostNode&) const = default;
};

/// The kinds of memory operations in a batch (the same numbers as CUDA's CUstreamBatchMemOpType).
enum class MemoryOperationKind : std::uint8_t {
    wait_32 = 1,             ///< waits until the word at the address and the value compare as `flags` say
    write_32 = 2,            ///< writes the value to the address
    flush_remote_writes = 3, ///< has no address
    wait_64 = 4,
    write_64 = 5,
    barrier = 6, ///< has no address
};

/// Bytes at the operation's address; 0 for kinds without address and value.
[[nodiscard]] constexpr std::uint32_t width_of(MemoryOperationKind kind) noexcept
{
    switch (kind) {
    case MemoryOperationKind::wait_32:
    case MemoryOperationKind::write_32: return 4;
    case MemoryOperationKind::wait_64:
    case MemoryOperationKind::write_64: return 8;
    case MemoryOperationKind::flush_remote_writes:
    case MemoryOperationKind::barrier: break;
    }
    return 0;
}

struct MemoryOperation {
    MemoryOperationKind kind = MemoryOperationKind::wait_32;
    Slot address; ///< aligned to the width; Slot{} for kinds without an address
    std::uint64_t value = 0;
    std::uint32_t flags = 0; ///< the driver's numbers (CUstreamWaitValue_flags, CUstreamWriteValue_flags ...)
    bool operator==(const MemoryOperation&) const = default;
};

/// Waits and writes of single words, one after the other.
struct MemoryOperationsNode {
    std::vector<MemoryOperation> operations; ///< at least one
    bool operator==(const MemoryOperationsNode&) const = default;
};

enum class SemaphoreAction : std::uint8_t { signal = 1, wait = 2 };

/// One use of an external semaphore. A semaphore counts upwards (a timeline), or is binary and has no value.
struct SemaphoreUse {
    std::uint32_t semaphore = 0; ///< index into Graph::semaphores
    std::uint64_t value = 0;     ///< the value to set, or to wait for; the bytes under the slot are ignored
    std::optional<Slot> slot{};  ///< refers to the scalar that gives the value; the slot's offset is 0
    std::uint32_t flags = 0;     ///< the driver's numbers (CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC ...)
    bool operator==(const SemaphoreUse&) const = default;
};

/// Signals semaphores that outside work waits for, or waits for semaphores that outside work signals.
struct SemaphoresNode {
    SemaphoreAction action = SemaphoreAction::signal;
    std::vector<SemaphoreUse> uses; ///< at least one
    bool operator==(const SemaphoresNode&) const = default;
};

struct EmptyNode {
    bool operator==(const EmptyNode&) const = default;
};

/// The alternatives' order is the stored node kind: empty 0, kernel 1, copy 2, fill 3, event record 4, event wait 5,
/// host 6, memory operations 7, semaphores 8.
using Node = std::variant<EmptyNode, KernelNode, CopyNode, FillNode, EventRecordNode, EventWaitNode, HostNode,
                          MemoryOperationsNode, SemaphoresNode>;

/// Properties of an edge (CUDA: CUgraphEdgeData). All zero: `to` starts after the whole of `from`.
struct EdgeData {
    std::uint8_t from_port = 0; ///< 1: programmatic, 2: at the launch's start
    std::uint8_t to_port = 0;
    std::uint8_t type = 0; ///< 1: programmatic (dependent launch)
    auto operator<=>(const EdgeData&) const = default;
};

struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    EdgeData data{};
    auto operator<=>(const Edge&) const = default;
};

/// A module's `__device__` or `__constant__` variable whose contents at capture time differed from the image's.
struct ModuleVariable {
    std::string name; ///< spelled as in the image's symbol table
    Bytes contents;
    std::vector<Slot> slots{}; ///< sorted by offset: addresses in the graph's constants
    bool operator==(const ModuleVariable&) const = default;
};

/// Device code that the graph needs, identified by the digest of its bytes.
struct ImageRef {
    Digest digest;
    std::uint64_t size = 0;
    /// SHA-256 of source and build options if known, else zero. Two builds of one source may differ in their bytes
    /// (PoCL), so graphs are compared by `origin` and loaded by `digest`.
    Digest origin;
    std::string label;                       ///< for people: the program's name
    std::vector<ModuleVariable> variables{}; ///< sorted by name, unique; written once, after loading
    bool operator==(const ImageRef&) const = default;
};

struct Graph {
    std::vector<Region> regions;
    std::vector<Scalar> scalars;
    std::vector<ImageRef> images; ///< one for each loaded module; a digest repeats if two modules' variables differ
    std::vector<std::string> events{};     ///< names, unique
    std::vector<Node> nodes;               ///< in a topological order: every edge goes from a lower to a higher index
    std::vector<Edge> edges;               ///< sorted, unique by (from, to)
    std::vector<std::string> semaphores{}; ///< names, unique: only the process's own code can create the semaphores
    bool operator==(const Graph&) const = default;
};

/// SHA-256 over everything but image bytes; an image counts by `origin`, or by `digest` if `origin` is zero. Equal for
/// two recordings of the same work.
[[nodiscard]] Digest graph_digest(const Graph& graph);

/// Removes the scratch regions, and the slots' references to them. The results have equal graph_digest() if two
/// recordings differ only in the number, sizes and layout of scratch regions. For comparing only: the result cannot be
/// bound.
[[nodiscard]] Graph without_scratch(Graph graph);

/// Returns the differences between two graphs, one a line, at most `limit`: "kernel rope (node 3): grid 4,1,1 against
/// 8,1,1". Empty if graph_digest() is equal.
[[nodiscard]] std::vector<std::string> difference(const Graph& recorded, const Graph& now, std::size_t limit = 16);

} // namespace warmgraph::cachefmt
