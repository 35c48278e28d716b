// The second half of every recording: gathers device code, encodes the entry, decodes it from its own bytes, restores
// and verifies it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "classify/classify.hpp"
#include "verify/module_state.hpp"
#include "warmgraph/capture/bindings.hpp"
#include "warmgraph/capture/recording.hpp"

namespace warmgraph {

struct RestorationRequest {
    std::shared_ptr<backends::Device> device;
    cachefmt::EntryHeader header;           ///< header of the entry, without counts
    cachefmt::Graph graph;                  ///< graph of the entry, without images
    std::vector<backends::Module*> modules; ///< in the order of the nodes' image indices
    std::vector<std::string> labels;        ///< the modules' names, for messages
    ModuleState state;                      ///< the modules' variables
    std::vector<MemoryRef> regions;         ///< memory of the declared regions, for the restore
    std::vector<std::uint64_t> scalars;
    DeclaredHandles handles;
    std::uint64_t function = 0;                        ///< as replay::ModuleUser::function
    std::vector<UnusedWord> unused{};                  ///< words that differed between captures and are zero in `graph`
    std::vector<std::pair<Digest, Bytes>> constants{}; ///< contents of the graph's constants, without duplicates
};

/// Adds the call's facts to the declared regions of a classified graph: alignment and memory space.
void describe_declared(cachefmt::Graph& graph, const backends::Device& device, const Frame& frame,
                       const cachefmt::Guards& guards);

/// Checks that the restored executable gives the right results.
struct Verify {
    std::function<Result<void>(replay::Executable&)> run;
    /// Whether a trial never ended. The executable is then leaked, and nothing more is tried.
    std::function<bool()> is_abandoned;
};

/// Tries images with only the kernels in use first, and the whole images if that fails to restore or verify. If
/// verification fails because a word is zero that had a value in the captures, finds the word and names it
/// (not_recordable). The result's header has no verification text yet. partly_launched: the caller's own memory was
/// damaged (TrialMemory, in place).
[[nodiscard]] Result<Recording> restore_verified(const RestorationRequest& request, replay::ModuleCache& modules,
                                                 const Verify& verify);

} // namespace warmgraph
