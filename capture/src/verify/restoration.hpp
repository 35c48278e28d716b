// The second half of every recording: device code gathered, entry encoded, decoded from its own bytes, restored,
// verified.
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
    cachefmt::EntryHeader header;           ///< without counts
    cachefmt::Graph graph;                  ///< without images
    std::vector<backends::Module*> modules; ///< as nodes' image indices
    std::vector<std::string> labels;        ///< of modules, for people
    ModuleState state;                      ///< of modules
    std::vector<MemoryRef> regions;         ///< to restore with: declared ones
    std::vector<std::uint64_t> scalars;
    DeclaredHandles handles;
    std::uint64_t function = 0;       ///< as in replay::ModuleUser
    std::vector<UnusedWord> unused{}; ///< of the graph: what differed between captures and is zero in it
    std::vector<std::pair<Digest, Bytes>> constants{}; ///< contents of the graph's constants, each once
};

/// Gives the declared regions of a classified graph what the call knows of them: alignment and kind of memory.
void describe_declared(cachefmt::Graph& graph, const backends::Device& device, const Frame& frame,
                       const cachefmt::Guards& guards);

/// Tells whether the restored executable does what it must.
struct Verify {
    std::function<Result<void>(replay::Executable&)> run;
    /// A trial never ended: the executable is leaked, and nothing more is tried.
    std::function<bool()> is_abandoned;
};

/// Images are cut down to the kernels in use first. Where the cut ones do not restore or do not verify, the whole ones
/// are tried before it is given up. Where it does not do what it must because a word is zero that had a value in the
/// captures, the word is found and named (not_recordable). The result's header has no verification text yet.
/// partly_launched: the caller's own memory was damaged (TrialMemory, in place).
[[nodiscard]] Result<Recording> restore_verified(const RestorationRequest& request, replay::ModuleCache& modules,
                                                 const Verify& verify);

} // namespace warmgraph
