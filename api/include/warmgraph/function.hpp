// A cached function, and what its first call did.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/arguments.hpp"
#include "warmgraph/profile.hpp"
#include "warmgraph/stream.hpp"

namespace warmgraph {

enum class Outcome : std::uint8_t {
    recorded, ///< missed, recorded, verified and (unless the disk failed) published
    replayed, ///< hit
    eager,    ///< ran as it is: policy, or no entry for these inputs
    refused,  ///< ran as it is, because it cannot be recorded or replayed; the reason says why
};
[[nodiscard]] WARMGRAPH_API std::string_view to_string(Outcome outcome) noexcept;

/// What the first call of a function (or of a variant) did.
struct Report {
    std::string function;
    Outcome outcome = Outcome::eager;
    std::string reason; ///< why it missed or was refused; empty for a plain hit
    double first_call_ms = 0;
    std::vector<std::pair<std::string, double>> phases; ///< milliseconds, in order: look up, load, build, compile, ...
    std::string entry;                                  ///< first digits of the entry's guards digest
};

/// A fact of a call that the nearest stored variant has otherwise.
struct MissedFact {
    std::string fact, recorded, now;
    std::string cure; ///< may be empty
};

/// A call that no entry could serve, as it was judged then.
struct Miss {
    std::string time;           ///< ISO 8601, UTC
    std::string reason;         ///< as in the log
    std::string end;            ///< "recorded", "ran as it is", "refused", "thrown", "replayed" (another process's)
    std::string entry;          ///< first digits of the guards digest that the call would have
    std::string nearest;        ///< of the variant with the fewest differences; "" where there was none
    std::uint64_t variants = 0; ///< that could be read on disk
    std::vector<MissedFact> differences{}; ///< from `nearest`, at most 32
    std::uint64_t agree = 0;               ///< facts that agree with `nearest`
};

/// A cached function. Cheap to move; may outlive its Cache and its Device.
class WARMGRAPH_API Function {
public:
    Function(Function&&) noexcept;
    Function& operator=(Function&&) noexcept;
    /// May be called within its own callable: the call gives its result, and nothing of it is recorded.
    ~Function();

    /// Enqueues the function in the device's default stream, or in `stream`, and returns without waiting for it. The
    /// first call loads or records. invalid_argument: an unknown, missing or repeated name, a buffer too small, a
    /// number that the declared type cannot hold or that is outside its range, a call inside a wrapped function.
    /// miss_forbidden: policy require_hit, or a miss of Cache::load's. partly_launched: the driver failed in the
    /// middle, or memory of the caller's was damaged; start again from a known state. What the wrapped callable throws
    /// passes through.
    Outcome operator()(std::initializer_list<Arg> args) { return call(std::span{args.begin(), args.size()}); }
    Outcome operator()(Stream& stream, std::initializer_list<Arg> args)
    {
        return call(stream, std::span{args.begin(), args.size()});
    }
    Outcome call(std::span<const Arg> args);
    Outcome call(Stream& stream, std::span<const Arg> args);
    /// call() where the caller has just asked Stream::is_capturing(), which said no. It is not asked again: a driver
    /// takes 0.1 us to say it, of a call that takes 3. In a stream that captures after all the driver ends the capture.
    Outcome call_uncaptured(Stream& stream, std::span<const Arg> args);

    /// Moves a state to other memory of the same size. invalid_argument: no such state, another size, within its own
    /// callable.
    void bind(std::string_view state, const MemoryRef& memory);

    /// The first call's report (of the latest variant that was loaded or recorded), or why the function ran in place of
    /// a replay that failed since.
    [[nodiscard]] Report report() const;
    /// Its last 16 misses in this process, newest first. The folder keeps the last 16 of all processes where it can be
    /// written, whatever the policy: `warmgraph explain` shows them. invalid_argument: within its own callable.
    [[nodiscard]] std::vector<Miss> misses() const;

    /// The shapes that this process called it with, the most frequent first, at most 512. Empty where no profile is kept.
    [[nodiscard]] std::vector<ProfiledShape> shapes() const;
    /// What each of Spec::buckets pads to now, ascending; empty for one that is fixed, or that nothing was learnt for.
    [[nodiscard]] std::vector<std::vector<std::int64_t>> buckets() const;

    struct Impl; ///< opaque

private:
    friend class Cache;
    explicit Function(std::shared_ptr<Impl> impl) noexcept;
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
