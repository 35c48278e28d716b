// Differential capture: compares several captures of one function and makes a graph with slots.
// differential_capture.md argues why this is right.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/capture/proof.hpp"

namespace warmgraph {

/// One capture, with the addresses of its memory.
struct CapturedGraph {
    backends::RawGraph graph;
    std::vector<MemoryRef> regions; ///< declared regions
    /// Memory from Recorder::alloc; for an adopted graph its memory pools.
    std::vector<std::pair<std::string, MemoryRef>> scratch;
    /// Parts of live allocations that had no owner from before the capture until after the capture. The work uses no
    /// address there.
    std::vector<MemoryRef> free_blocks{};
};

/// Facts from another process about the words in its capture that look like addresses.
struct ForeignMemory {
    std::vector<MemoryRef> live;           ///< the device allocations that such words lay in
    std::vector<std::uint64_t> host_words; ///< the words that were addresses of ordinary host memory
    /// Whether kernels of this process can read ordinary host memory at an address. Null: kernels cannot.
    std::function<bool(std::uint64_t)> is_readable_here{};
};

/// A capture in which one scalar had another value and nothing else differed from `first`.
struct ScalarProbe {
    std::size_t scalar = 0;
    std::uint64_t bits = 0;
    CapturedGraph capture;
};

struct Captures {
    CapturedGraph first;
    std::optional<CapturedGraph> again; ///< a repetition of `first`, which it must equal; nullopt for an adopted graph
    /// A capture with each region at another address; nullopt for an adopted graph with one capture.
    std::optional<CapturedGraph> moved;
    /// For each declared region, the index of the first region that it overlaps. Set if the function depends on the
    /// overlap and overlapping regions therefore moved together; guards then check their distances, and a word follows
    /// all regions of a group. Empty: no groups.
    std::vector<std::uint32_t> groups{};
    std::vector<NamedMemory>
        constants{}; ///< memory whose contents the entry stores; its address is the same in all captures
    std::vector<ScalarProbe> probes;    ///< at least one for each scalar, if check_probe() checked the others
    std::vector<std::uint64_t> scalars; ///< the scalars' values in first, again and moved
    /// For adopted graphs, which have no probes: the scalars' values in `moved`. No two scalars changed by the same
    /// distance.
    std::vector<std::uint64_t> moved_scalars{};
    std::int64_t number_distance = 0; ///< as AdoptOptions::number_distance
    /// As Device::limits().flat_addresses. True: pointers are words of by-value parameters.
    bool flat_addresses = false;
    Proof proof = Proof::required;
    UnusedWords unused = UnusedWords::refused;
    /// As Recording::allocation_at of the device; null without flat addresses. A word in a live allocation is refused
    /// if it does not move and follows no region.
    std::function<std::optional<MemoryRef>(std::uint64_t)> allocation_at{};
    /// Returns the name of the memory at an address if a constant must not lie there although it is not an allocation
    /// of the driver ("the heap of device code's malloc"). May be null.
    std::function<std::optional<std::string>(std::uint64_t)> other_memory_at{};
    /// Whether an address belongs to ordinary host memory that the device cannot reach. May be null: not known.
    std::function<bool(std::uint64_t)> is_host_only{};
    /// As Recording::is_handle; null without flat addresses. A parameter's word that is a handle must follow a scalar.
    std::function<bool(std::uint64_t)> is_handle{};
    DeclaredHandles handles{};
    std::vector<NamedMemory> others{}; ///< as Subject::others
    /// Set if `moved` comes from another process. Nothing else is known about the addresses in `moved`, and adjacent
    /// memory may have moved together.
    std::optional<ForeignMemory> foreign{};
};

/// Returns " but in 'h' of 'step.forward'" if the address lies in one of Captures::others, otherwise "".
[[nodiscard]] std::string describe_other_memory(const Captures& captures, const Address& address);

/// A word of a by-value parameter whose differing bytes became zero (UnusedWords::tried).
struct UnusedWord {
    std::size_t node = 0, param = 0;
    std::size_t offset = 0;         ///< offset of the word's first byte in the parameter
    std::vector<std::size_t> bytes; ///< offsets in the parameter of the bytes that became zero
    Bytes first;                    ///< contents of these bytes in the first capture
    std::string place;              ///< text of the place: "kernel rope (node 3) takes at parameter 2 byte 16"
    std::uint64_t was = 0, is = 0;  ///< the whole word in both captures, for messages
};

/// Four bytes of a by-value parameter. Together with four other bytes they make the address of live memory, but no
/// region explains this address. Either they are part of a pointer, or they remain from a pointer that was on the stack
/// before.
struct SuspectHalf {
    std::size_t node = 0, param = 0;
    std::size_t offset = 0;    ///< offset of the upper half in the parameter
    std::uint64_t address = 0; ///< the address made with the other four bytes
    std::string why;           ///< text of the refusal if the half is part of a pointer
    MemoryRef region{};        ///< memory of the call that contains the address; null: other memory
    /// Whether the four bytes before it differ between the captures too. Then the whole word is one of
    /// Classification::unused.
    bool is_whole = false;
};

/// Two regions, the second one beginning at the first one's end, in both captures. A word with that address was taken
/// for the second one's start. Trials check this: they place the two regions apart, with readable memory between them.
struct Neighbours {
    std::uint32_t before = 0, after = 0; ///< declared regions
    std::string why;                     ///< text of the refusal if the regions cannot be placed apart
    bool operator==(const Neighbours&) const = default;
};

struct Classification {
    /// The graph without images and without sizes of declared regions. The nodes' image indices count the distinct
    /// modules in `modules`, in order of first use.
    cachefmt::Graph graph;
    std::vector<backends::Module*> modules;
    /// Number of words that count as addresses only by their range (EntryInfo::unproven).
    std::uint32_t unproven = 0;
    std::vector<UnusedWord> unused; ///< verification must confirm that these words are unused
    /// A run of the original must show that these halves are not parts of pointers. Only with UnusedWords::tried.
    std::vector<SuspectHalf> suspects;
    std::vector<Neighbours> neighbours{}; ///< verification must place these regions apart. Only with Captures::foreign
};

/// Compares the captures and returns the graph with its slots. The text of not_recordable names node, kernel,
/// parameter, byte offset, the values, and the cure.
[[nodiscard]] Result<Classification> classify(const Interface& interface, const Captures& captures);

} // namespace warmgraph
