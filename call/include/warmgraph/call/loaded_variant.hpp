// A variant that is loaded in this process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "warmgraph/base/sha256.hpp"
#include "warmgraph/guards/call_guard.hpp"
#include "warmgraph/preload/placeholder.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

/// Kept until a restored variant is used for the first time: it is a hit then.
struct Unused {
    std::shared_ptr<const Placeholder>
        placeholder; ///< where a preloaded graph's inputs and outputs are until then; may be null
    double load_ms = 0, answer_ms = 0;
    store::PhaseTimes times{};                        ///< of the load
    std::vector<cachefmt::CompiledWithin> compiled{}; ///< within answer_ms
};

struct LoadedVariant {
    /// Of one of a pair's two.
    enum class Use : std::uint8_t {
        replayed,
        waits,        ///< a forward whose backward is not recorded yet: until then the function runs as it is
        runs_as_it_is ///< its backward cannot be recorded; the executable is gone
    };

    guards::CallGuard guard;
    std::unique_ptr<replay::Executable> executable;
    Digest guards_digest;
    std::optional<Unused> unused{};
    std::unique_ptr<store::LoadMark> mark{}; ///< of a load whose first launch is not through; null: none is noted
    store::IsDone launched{};                ///< tells whether that is; empty before it
    bool only_here = false;                  ///< adopted and not published: it could not be loaded again
    std::uint64_t calls = 0;
    Use use = Use::replayed;
    bool is_preloaded = false;                          ///< for this function: it takes no other variant's place
    std::optional<cachefmt::RecordingPart> recording{}; ///< of one of a pair's two
    std::string made{}; ///< when and by which version, for the log; "" for what this process recorded
};

} // namespace warmgraph
