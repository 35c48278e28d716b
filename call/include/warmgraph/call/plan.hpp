// What a first call will do, and why: decided from values alone (guards here and now, headers on disk, policy). No
// payload is read and no driver asked. Function::Impl does what the plan says.
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

/// What was found on disk for a call that misses.
struct Judgement {
    std::uint64_t variants = 0;                  ///< whose headers could be read
    std::optional<Digest> nearest{};             ///< the fewest differences, then the most recent
    std::vector<guards::Mismatch> differences{}; ///< of that one; empty for one that is `recompiled`
    std::uint64_t agree = 0;                     ///< facts of it that agree
    std::string word = "unusable"; ///< the reason for statistics: "no_entry", "driver.version", "input", ...
};

struct Plan {
    enum class Action : std::uint8_t {
        replay,       ///< one of `entries`, the first one that can be used
        record,       ///< run it as it is, and record it
        run_as_it_is, ///< a miss that is not recorded
        refuse,       ///< the same, for a reason that lasts
    };
    Action action = Action::run_as_it_is;
    std::vector<cachefmt::EntryKey> entries{};
    std::string reason{}; ///< why it is not replayed; empty for a replay
    /// False where the reason passes by itself (another process is recording): the next call asks again.
    bool lasts = true;
    Judgement judgement{}; ///< of a miss whose look-up came so far
};

/// What is asked of a call's function, beside the headers.
struct Situation {
    std::string_view function; ///< "model/function", for cures
    const cachefmt::Guards& now;
    guards::Relaxation relaxation{};
    Policy policy = Policy::read_write;
    bool has_callable = true;
    bool has_pending = false;     ///< one of its recordings waits for its moment, or is under way
    std::string caching_is_off{}; ///< why; empty where it works
    bool uses_graphs = true;      ///< false: they are switched off, which is policy off for another reason
};

/// The headers on disk; each is asked for when it is needed, and at most once.
struct Headers {
    /// The one under exactly these guards; null where there is none.
    std::function<store::Header()> exact;
    /// All of the function.
    std::function<Result<std::vector<store::Variant>>()> all;
};

[[nodiscard]] Plan decide(const Situation& situation, const Headers& headers);

/// What is done where nothing can be replayed, for this reason.
[[nodiscard]] Plan on_miss(const Situation& situation, std::string reason, Judgement judgement = {});

/// Does policy refresh ask for a new recording? Without a callable it cannot.
[[nodiscard]] bool refreshes(const Situation& situation) noexcept;

} // namespace warmgraph
