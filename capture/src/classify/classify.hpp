// Differential capture: several captures of one function, told apart, become a graph with slots.
// Why it is right is argued in differential_capture.md.
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

/// One capture and where everything was in it.
struct CapturedGraph {
    backends::RawGraph graph;
    std::vector<MemoryRef> regions;                         ///< declared ones
    std::vector<std::pair<std::string, MemoryRef>> scratch; ///< Recorder::alloc's, an adopted graph's memory pools
    /// Parts of live allocations that nobody owned from before the capture until after it: no work uses an address
    /// there.
    std::vector<MemoryRef> free_blocks{};
};

/// What the process of a capture that is not this one's said of words that look like addresses.
struct ForeignMemory {
    std::vector<MemoryRef> live;           ///< allocations of the device's that such words lay in
    std::vector<std::uint64_t> host_words; ///< those that were ordinary host memory
    /// Whether kernels of this process can read ordinary host memory at an address. May be null: they cannot.
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
    std::optional<CapturedGraph> again; ///< same addresses, same values: must be equal. None of an adopted graph
    std::optional<CapturedGraph> moved; ///< every region elsewhere. None when an adopted graph was captured only once
    /// By declared region, the first one that it overlaps, where those of a group moved together: the function asks how
    /// they lie, their distances are guarded, and a word that follows one follows all. Empty: each moved by itself.
    std::vector<std::uint32_t> groups{};
    std::vector<NamedMemory>
        constants{};                    ///< memory whose contents the entry carries: at the same place in all captures
    std::vector<ScalarProbe> probes;    ///< one for each scalar does, where check_probe() saw the others
    std::vector<std::uint64_t> scalars; ///< their values in first, again and moved
    /// Of adopted graphs, which have no probes: the values in moved, each other by a distance of its own.
    std::vector<std::uint64_t> moved_scalars{};
    /// Device::limits().flat_addresses: pointers are words of by-value parameters.
    bool flat_addresses = false;
    Proof proof = Proof::required;
    UnusedWords unused = UnusedWords::refused;
    /// Recording::allocation_at of the device; null where there are no flat addresses. A word that does not move, follows
    /// no region and lies in a live allocation is refused.
    std::function<std::optional<MemoryRef>(std::uint64_t)> allocation_at{};
    /// Other memory that a constant must not lie in, as part of a sentence ("the heap of device code's malloc"): what
    /// the driver does not count among its allocations. May be null.
    std::function<std::optional<std::string>(std::uint64_t)> other_memory_at{};
    /// Whether an address is one of ordinary host memory, which the device cannot reach. May be null: not known.
    std::function<bool(std::uint64_t)> is_host_only{};
    /// Recording::is_handle; null likewise. A parameter's word that is one and follows no scalar is refused.
    std::function<bool(std::uint64_t)> is_handle{};
    DeclaredHandles handles{};
    std::vector<NamedMemory> others{}; ///< Subject::others
    /// `moved` is another process's: nothing but this is known of its addresses, and memory that is side by side moved
    /// together from one process to the other.
    std::optional<ForeignMemory> foreign{};
};

/// " but in 'h' of 'step.forward'" where the address lies in one of Captures::others, else "".
[[nodiscard]] std::string in_others(const Captures& captures, const Address& address);

/// A word of a by-value parameter whose differing bytes became zero (UnusedWords::tried).
struct UnusedWord {
    std::size_t node = 0, param = 0;
    std::size_t offset = 0;         ///< of its first byte in the parameter
    std::vector<std::size_t> bytes; ///< offsets in the parameter of those that became zero
    Bytes first;                    ///< what these held in the first capture
    std::string place;              ///< "kernel rope (node 3) takes at parameter 2 byte 16"
    std::uint64_t was = 0, is = 0;  ///< the whole word in both captures, for messages
};

/// Four bytes of a by-value parameter that are the same in both captures and, with others, make the address of live
/// memory that nobody declared: part of a pointer, or what a pointer left there that was on the stack before.
struct SuspectHalf {
    std::size_t node = 0, param = 0;
    std::size_t offset = 0;    ///< of the upper half, in the parameter
    std::uint64_t address = 0; ///< that it makes with the four bytes before it
    std::string why;           ///< the refusal, if it is part of a pointer
};

/// A region and one that begins at its end, in both captures: a word there was taken for the start of the second. Where
/// the two lie apart, with readable memory between them, the results tell whether it was.
struct Neighbours {
    std::uint32_t before = 0, after = 0; ///< declared regions
    std::string why;                     ///< the refusal, where they cannot be put apart
    bool operator==(const Neighbours&) const = default;
};

struct Classified {
    /// Without images (nodes' image indices count distinct modules in order of first use, listed in `modules`) and
    /// without sizes of declared regions.
    cachefmt::Graph graph;
    std::vector<backends::Module*> modules;
    std::uint32_t unproven = 0;     ///< words taken for addresses by range alone (EntryInfo::unproven)
    std::vector<UnusedWord> unused; ///< verification must bless them
    /// A run of the original must show that they are no parts of pointers. Only where UnusedWords::tried.
    std::vector<SuspectHalf> suspects;
    std::vector<Neighbours> neighbours{}; ///< verification must put them apart. Only where Captures::foreign
};

/// not_recordable names node, kernel, parameter, byte offset, the values, and the cure.
[[nodiscard]] Result<Classified> classify(const Interface& interface, const Captures& captures);

} // namespace warmgraph
