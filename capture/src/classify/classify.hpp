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
    std::vector<MemoryRef> regions;                         ///< declared regions
    std::vector<std::pair<std::string, MemoryRef>> scratch; ///< from Recorder::alloc; an adopted graph's memory pools
    /// Parts of live allocations that had no owner from before the capture until after it. No work uses an address
    /// there.
    std::vector<MemoryRef> free_blocks{};
};

/// Facts from another process about the words in its capture that look like addresses.
struct ForeignMemory {
    std::vector<MemoryRef> live;           ///< the device allocations that such words lay in
    std::vector<std::uint64_t> host_words; ///< the words that were addresses of ordinary host memory
    /// Whether kernels of this process can read ordinary host memory at an address. Null: they cannot.
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
    std::optional<CapturedGraph> again; ///< same addresses and values: must be equal. Null for an adopted graph
    std::optional<CapturedGraph> moved; ///< every region elsewhere. Null for an adopted graph with one capture
    /// For each declared region the first one that it overlaps, if overlapping regions moved together: the function
    /// depends on the overlap, distances are guarded, and a word follows all regions of a group. Empty: no groups.
    std::vector<std::uint32_t> groups{};
    std::vector<NamedMemory>
        constants{};                    ///< memory whose contents the entry carries: at the same place in all captures
    std::vector<ScalarProbe> probes;    ///< one for each scalar is enough if check_probe() checked the others
    std::vector<std::uint64_t> scalars; ///< the scalars' values in first, again and moved
    /// For adopted graphs, which have no probes: the values in `moved`. Their distances to `scalars` all differ.
    std::vector<std::uint64_t> moved_scalars{};
    /// Device::limits().flat_addresses: pointers are words of by-value parameters.
    bool flat_addresses = false;
    Proof proof = Proof::required;
    UnusedWords unused = UnusedWords::refused;
    /// Recording::allocation_at of the device; null without flat addresses. A word in a live allocation is refused if
    /// it does not move and follows no region.
    std::function<std::optional<MemoryRef>(std::uint64_t)> allocation_at{};
    /// Memory outside the driver's allocations that a constant must not lie in, as part of a sentence ("the heap of
    /// device code's malloc"). May be null.
    std::function<std::optional<std::string>(std::uint64_t)> other_memory_at{};
    /// Whether an address belongs to ordinary host memory that the device cannot reach. May be null: not known.
    std::function<bool(std::uint64_t)> is_host_only{};
    /// Recording::is_handle; null without flat addresses. A parameter's word that is a handle must follow a scalar.
    std::function<bool(std::uint64_t)> is_handle{};
    DeclaredHandles handles{};
    std::vector<NamedMemory> others{}; ///< Subject::others
    /// Set if `moved` comes from another process. Nothing else is known of its addresses; adjacent memory moved
    /// together.
    std::optional<ForeignMemory> foreign{};
};

/// Returns " but in 'h' of 'step.forward'" if the address lies in one of Captures::others, otherwise "".
[[nodiscard]] std::string in_others(const Captures& captures, const Address& address);

/// A word of a by-value parameter whose differing bytes became zero (UnusedWords::tried).
struct UnusedWord {
    std::size_t node = 0, param = 0;
    std::size_t offset = 0;         ///< offset of the word's first byte in the parameter
    std::vector<std::size_t> bytes; ///< offsets in the parameter of the bytes that became zero
    Bytes first;                    ///< contents of these bytes in the first capture
    std::string place;              ///< "kernel rope (node 3) takes at parameter 2 byte 16"
    std::uint64_t was = 0, is = 0;  ///< the whole word in both captures, for messages
};

/// Four bytes of a by-value parameter that are equal in both captures. With four other bytes they make the address of
/// live undeclared memory: they are part of a pointer, or remains of a pointer that lay on the stack before.
struct SuspectHalf {
    std::size_t node = 0, param = 0;
    std::size_t offset = 0;    ///< offset of the upper half in the parameter
    std::uint64_t address = 0; ///< the address made with the four bytes before it
    std::string why;           ///< the refusal, if it is part of a pointer
};

/// Two regions, the second one beginning at the first one's end, in both captures. A word with that address was taken
/// for the second one's start. Trials check this with the two placed apart and readable memory between them.
struct Neighbours {
    std::uint32_t before = 0, after = 0; ///< declared regions
    std::string why;                     ///< the refusal if they cannot be placed apart
    bool operator==(const Neighbours&) const = default;
};

struct Classified {
    /// Has no images (nodes' image indices count the distinct modules in `modules`, in order of first use) and no sizes
    /// of declared regions.
    cachefmt::Graph graph;
    std::vector<backends::Module*> modules;
    std::uint32_t unproven = 0;     ///< words that count as addresses only by their range (EntryInfo::unproven)
    std::vector<UnusedWord> unused; ///< verification must confirm them
    /// A run of the original must show that they are not parts of pointers. Only with UnusedWords::tried.
    std::vector<SuspectHalf> suspects;
    std::vector<Neighbours> neighbours{}; ///< verification must place them apart. Only with Captures::foreign
};

/// The text of not_recordable names node, kernel, parameter, byte offset, the values, and the cure.
[[nodiscard]] Result<Classified> classify(const Interface& interface, const Captures& captures);

} // namespace warmgraph
