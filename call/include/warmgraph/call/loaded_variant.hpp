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

/// Facts about a restored variant that are kept until its first use, which counts as a hit.
struct PendingHit {
    std::shared_ptr<const Placeholder>
        placeholder; ///< addresses of a preloaded graph's inputs and outputs until the first use; may be null
    double load_ms = 0, answer_ms = 0;
    store::PhaseTimes times{};                        ///< phase times of the load
    std::vector<cachefmt::CompiledWithin> compiled{}; ///< programs whose compilation is part of answer_ms
};

struct LoadedVariant {
    /// How one half of a pair is used.
    enum class Use : std::uint8_t {
        replayed,
        waits,        ///< a forward whose backward is not recorded yet: the function runs without a graph until it is
        runs_as_it_is ///< a forward whose backward cannot be recorded; the executable is destroyed
    };

    guards::CallGuard guard;
    std::unique_ptr<replay::Executable> executable;
    Digest guards_digest;
    std::optional<PendingHit> unused{};
    std::unique_ptr<store::LoadMark> mark{}; ///< the load's mark until the first launch is done; null: no mark
    store::IsDone launched{};                ///< whether the first launch is done; empty before the launch
    bool only_here = false; ///< whether it was adopted and not published, so that it cannot be loaded again
    std::uint64_t calls = 0;
    Use use = Use::replayed;
    bool is_preloaded = false; ///< whether it was preloaded for this function; it then takes no other variant's place
    std::optional<cachefmt::RecordingPart> recording{}; ///< set for one half of a pair
    std::string made{}; ///< time and version of the recording, for the log; "" if this process recorded it
};

} // namespace warmgraph
