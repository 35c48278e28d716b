// Adoption: a graph that other code captured becomes an entry of a function.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/capture/proof.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph {

/// A native graph (CUgraph) and the addresses of the function's regions during its capture. The caller keeps the graph.
struct AdoptedCapture {
    void* graph = nullptr;
    std::vector<MemoryRef> regions;                         ///< in the order of Interface::regions
    std::vector<std::pair<std::string, MemoryRef>> scratch; ///< memory pools, workspaces; an arena when restored
    DeclaredHandles handles;
    std::vector<std::uint64_t> scalars{}; ///< in the order of Interface::scalars
    std::vector<MemoryRef> free_blocks{}; ///< as CapturedGraph::free_blocks
};

struct AdoptOptions {
    Proof proof = Proof::required;
    UnusedWords unused = UnusedWords::tried;
    std::vector<std::string> frozen_variables{};      ///< as RecordOptions::frozen_variables
    std::uint64_t most_constant_bytes = 64ULL << 20U; ///< bytes of all constants together
    /// Stores as constants the allocations that the graph only reads and that are not declared, if an entry can carry
    /// them.
    bool keeps_undeclared = false;
    /// The second capture, if another process wrote it; adopt()'s `second` is null then. The driver is not asked about
    /// its addresses.
    const StoredCapture* stored = nullptr;
    /// Compares the original with the function's own run. `after_run` is called after each run of the original, while
    /// the results are in its own memory. `agreement` is called after the last run and returns how the results agree,
    /// or an error. Both may be empty.
    std::function<Result<void>()> after_run{};
    std::function<Result<std::string>()> agreement{};
    /// Called with the finished recording, while other executables can still be verified in the same way. Its error
    /// ends the adoption. May be empty.
    std::function<Result<void>(const cachefmt::Entry& recorded, const HoldToAnswer& hold)> compare{};
};

/// `frame` describes the first capture's call (its memory is first.regions and holds valid contents). `second`, if
/// given, is another capture of the same work with the regions at other addresses; only its addresses and scalars are
/// used. Runs the original and the restored graph, both without semaphores, on equal contents and compares the results,
/// then restores the caller's memory. The original runs in the caller's memory, so its runs have no time limit.
[[nodiscard]] Result<Recording> adopt(const Subject& subject, const Frame& frame, cachefmt::EntryHeader header,
                                      const AdoptedCapture& first, const AdoptedCapture* second,
                                      const AdoptOptions& options, replay::ModuleCache& modules, Phases& phases);

/// Returns the capture that another process's adoption uses as its second one, under this key. Reads the graph back and
/// runs nothing; the capture needs no contents. Errors: as adopt() for a graph that cannot be read.
[[nodiscard]] Result<StoredCapture> capture_for_others(const Subject& subject, const Frame& frame,
                                                       cachefmt::EntryKey key, const AdoptedCapture& capture);

} // namespace warmgraph
