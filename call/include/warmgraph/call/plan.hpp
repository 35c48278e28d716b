// The plan of a first call, with its reasons. It is decided only from values: the call's guards, the headers on disk
// and the policy. Planning reads no payload and asks no driver. Function::Impl carries out the plan.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/spec.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

/// Facts that the stored entries show about a call that misses.
struct MissAnalysis {
    std::uint64_t variants = 0;      ///< number of variants with a readable header
    std::optional<Digest> nearest{}; ///< the variant with the fewest differences; of several, the most recent
    /// Differences of `nearest` from the call; empty if `nearest` is `recompiled`.
    std::vector<guards::Mismatch> differences{};
    std::uint64_t agree = 0;       ///< how many facts of `nearest` agree
    std::string word = "unusable"; ///< reason's word in statistics: "no_entry", "driver.version", "input", ...
};

struct Plan {
    enum class Action : std::uint8_t {
        replay,       ///< replay the first entry of `entries` that can be used
        record,       ///< run the function and record it
        run_as_it_is, ///< run the function without a graph: a miss that is not recorded
        refuse,       ///< as run_as_it_is, but the reason lasts
    };
    Action action = Action::run_as_it_is;
    std::vector<cachefmt::EntryKey> entries{};
    std::string reason{}; ///< why the call is not replayed; empty for a replay
    /// Whether `reason` lasts. False if it passes by itself (another process is recording); the next call then decides
    /// again.
    bool lasts = true;
    MissAnalysis analysis{}; ///< set for a miss that was looked up on disk
};

/// The facts about the function of a call from which a plan is made, besides the headers.
struct Situation {
    std::string_view function; ///< name of the function for error texts: "model/function"
    const cachefmt::Guards& now;
    guards::Relaxation relaxation{};
    Policy policy = Policy::read_write;
    bool has_callable = true;
    bool has_pending = false;     ///< whether a recording of the function waits or is under way
    std::string caching_is_off{}; ///< why caching is off; empty if caching works
    bool uses_graphs = true;      ///< false: graphs are switched off, which has the same effect as policy off
};

/// The headers on disk. Each function reads its headers only when called, and at most once.
struct Headers {
    /// Returns the header with exactly these guards; null if there is no such header.
    std::function<store::Header()> exact;
    /// Returns all variants of the function.
    std::function<Result<std::vector<store::Variant>>()> all;
};

[[nodiscard]] Plan decide(const Situation& situation, const Headers& headers);

/// Returns the plan if nothing can be replayed for this reason.
[[nodiscard]] Plan on_miss(const Situation& situation, std::string reason, MissAnalysis analysis = {});

/// Whether the policy is refresh and asks for a new recording. A function without a callable cannot record.
[[nodiscard]] bool refreshes(const Situation& situation) noexcept;

} // namespace warmgraph
