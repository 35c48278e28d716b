// The plan of a first call, and its reasons, decided only from values (guards here and now, headers on disk, policy).
// Reads no payload and asks no driver. Function::Impl carries out the plan.
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

/// The facts on disk about a call that misses.
struct Judgement {
    std::uint64_t variants = 0;                  ///< variants with a readable header
    std::optional<Digest> nearest{};             ///< the variant with fewest differences, then the most recent
    std::vector<guards::Mismatch> differences{}; ///< differences of `nearest`; empty if it is `recompiled`
    std::uint64_t agree = 0;                     ///< how many facts of `nearest` agree
    std::string word = "unusable";               ///< reason in statistics: "no_entry", "driver.version", "input", ...
};

struct Plan {
    enum class Action : std::uint8_t {
        replay,       ///< replay the first of `entries` that can be used
        record,       ///< run the function, and record it
        run_as_it_is, ///< a miss that is not recorded
        refuse,       ///< the same, for a reason that lasts
    };
    Action action = Action::run_as_it_is;
    std::vector<cachefmt::EntryKey> entries{};
    std::string reason{}; ///< why it is not replayed; empty for a replay
    /// False if the reason passes by itself (another process is recording): the next call asks again.
    bool lasts = true;
    Judgement judgement{}; ///< for a miss that was looked up on disk
};

/// The facts about a call's function, besides the headers.
struct Situation {
    std::string_view function; ///< "model/function", for error texts
    const cachefmt::Guards& now;
    guards::Relaxation relaxation{};
    Policy policy = Policy::read_write;
    bool has_callable = true;
    bool has_pending = false;     ///< one of its recordings waits or is under way
    std::string caching_is_off{}; ///< why; empty if caching works
    bool uses_graphs = true;      ///< false: graphs are switched off, with the effect of policy off
};

/// The headers on disk; each is read only when needed, and at most once.
struct Headers {
    /// The header with exactly these guards; null if there is none.
    std::function<store::Header()> exact;
    /// All variants of the function.
    std::function<Result<std::vector<store::Variant>>()> all;
};

[[nodiscard]] Plan decide(const Situation& situation, const Headers& headers);

/// The plan if nothing can be replayed for this reason.
[[nodiscard]] Plan on_miss(const Situation& situation, std::string reason, Judgement judgement = {});

/// Whether policy refresh asks for a new recording. It cannot without a callable.
[[nodiscard]] bool refreshes(const Situation& situation) noexcept;

} // namespace warmgraph
