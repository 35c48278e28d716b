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
    std::vector<MemoryRef> regions; ///< in the order of Interface::regions
    /// Memory pools and workspaces; the restored graph gets an arena for them.
    std::vector<std::pair<std::string, MemoryRef>> scratch;
    DeclaredHandles handles;
    std::vector<std::uint64_t> scalars{}; ///< in the order of Interface::scalars
    std::vector<MemoryRef> free_blocks{}; ///< as CapturedGraph::free_blocks
};

struct AdoptOptions {
    Proof proof = Proof::required;
    UnusedWords unused = UnusedWords::tried;
    std::vector<std::string> frozen_variables{};      ///< as RecordOptions::frozen_variables
    std::uint64_t most_constant_bytes = 64ULL << 20U; ///< limit for all constants together, in bytes
    /// Stores as constants the allocations that the graph only reads and that are not declared, if an entry can carry
    /// them.
    bool keeps_undeclared = false;
    /// The second capture, if another process wrote it; adopt()'s `second` is null then. The driver is not asked about
    /// the addresses in that capture.
    const StoredCapture* stored = nullptr;
    std::int64_t number_distance = 0; ///< as Adoption::number_distance
    /// Both compare the original graph's results with the results of the function's own run. `after_run` is called
    /// after each run of the original graph, while that graph's memory holds the results. `agreement` is called after
    /// the last run and returns a text about how the results agree, or an error. Both may be empty.
    std::function<Result<void>()> after_run{};
    std::function<Result<std::string>()> agreement{};
    /// Called with the finished recording; `hold` can verify other executables in the same way as the recording. An
    /// error that `compare` returns ends the adoption. May be empty.
    std::function<Result<void>(const cachefmt::Entry& recorded, const HoldToAnswer& hold)> compare{};
};

/// Records the graph of a capture. `frame` describes the first capture's call; the call's memory is first.regions and
/// must hold valid contents. `second`, if given, is another capture of the same work with the regions at other
/// addresses; of the second capture only addresses and scalars are used. Runs the original and the restored graph, both
/// without semaphores, on equal contents and compares the results, then restores the caller's memory. The original runs
/// in the caller's memory, so its runs have no time limit.
[[nodiscard]] Result<Recording> adopt(const CaptureTarget& target, const Frame& frame, cachefmt::EntryHeader header,
                                      const AdoptedCapture& first, const AdoptedCapture* second,
                                      const AdoptOptions& options, replay::ModuleCache& modules, Phases& phases);

/// Returns a capture that an adoption in another process can use as its second capture; `key` must be the key of both
/// calls. Reads the graph from the driver and runs nothing, so the memory needs no valid contents. Errors: as adopt()
/// for a graph that cannot be read.
[[nodiscard]] Result<StoredCapture> capture_for_others(const CaptureTarget& target, const Frame& frame,
                                                       cachefmt::EntryKey key, const AdoptedCapture& capture);

} // namespace warmgraph
