// Adoption: a graph that somebody else captured becomes an entry of a function.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/capture/proof.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph {

/// A native graph (CUgraph) and where the function's regions were when it was captured. The graph stays the caller's.
struct AdoptedCapture {
    void* graph = nullptr;
    std::vector<MemoryRef> regions;                         ///< as Interface::regions
    std::vector<std::pair<std::string, MemoryRef>> scratch; ///< its memory pools, workspaces: arena when restored
    DeclaredHandles handles;
    std::vector<std::uint64_t> scalars{}; ///< as Interface::scalars
    std::vector<MemoryRef> free_blocks{}; ///< as CapturedGraph::free_blocks
};

struct AdoptOptions {
    Proof proof = Proof::required;
    UnusedWords unused = UnusedWords::tried;
    std::vector<std::string> frozen_variables{};      ///< as in RecordOptions
    std::uint64_t most_constant_bytes = 64ULL << 20U; ///< likewise
    /// Allocations that the graph only reads and nobody declared are kept as constants, where an entry can carry them.
    bool keeps_undeclared = false;
    /// The second capture, where another process wrote it; adopt()'s own is null then. Nothing is asked of its addresses.
    const StoredCapture* stored = nullptr;
    /// What the function gave when it ran as it is. `after_run` is called after each run of the original on its own memory,
    /// where its results lie then, and `agreement` after the last of them: how they agree, or why not. Empty: nobody asks.
    std::function<Result<void>()> after_run{};
    std::function<Result<std::string>()> agreement{};
    /// Called once there is a recording, while others can be held to the same. What it returns ends the adoption. Empty:
    /// nobody asks.
    std::function<Result<void>(const cachefmt::Entry& recorded, const HoldToAnswer& hold)> compare{};
};

/// `frame` describes the first capture's call (its memory is first.regions and holds valid contents). `second`, where
/// given, is another capture of the same work with the regions elsewhere; only addresses and scalars are taken from it.
/// Verified by running the original graph and the restored one, both without semaphores, on equal contents; the
/// caller's memory is put back as it was. The original runs in the caller's memory, so its runs have no time limit.
[[nodiscard]] Result<Recording> adopt(const Subject& subject, const Frame& frame, cachefmt::EntryHeader header,
                                      const AdoptedCapture& first, const AdoptedCapture* second,
                                      const AdoptOptions& options, replay::ModuleCache& modules, Phases& phases);

/// What another process's adoption takes for its second capture, under this key. Reads the graph back and runs nothing;
/// the capture needs no contents. Errors: as adopt() has them of a graph that cannot be read.
[[nodiscard]] Result<StoredCapture> capture_for_others(const Subject& subject, const Frame& frame,
                                                       cachefmt::EntryKey key, const AdoptedCapture& capture);

} // namespace warmgraph
