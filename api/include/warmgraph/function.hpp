// A cached function, and the report on its first call.
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
    recorded, ///< a miss: the function ran, and was recorded, verified and (unless the disk failed) published
    replayed, ///< a hit: the stored graph ran
    eager,    ///< the function ran as it is: the policy does not record, or a later call may record it
    refused,  ///< the function ran as it is, because it cannot be recorded or replayed; the report's reason says why
};
[[nodiscard]] WARMGRAPH_API std::string_view to_string(Outcome outcome) noexcept;

/// A report on the first call of a function, or of one of its variants.
struct Report {
    std::string function;
    Outcome outcome = Outcome::eager;
    std::string reason; ///< why the call missed or was refused; empty for a plain hit
    double first_call_ms = 0;
    std::vector<std::pair<std::string, double>>
        phases;        ///< the call's phases in order (look up, load, build, compile, ...), in milliseconds
    std::string entry; ///< the first digits of the entry's guards digest
    /// The most device memory, in bytes, that the recording held at one time, the replayed graph's own memory included;
    /// 0 if nothing was recorded. Memory that the function itself allocates while it is captured counts too.
    std::uint64_t recording_bytes = 0;
};

/// A fact of a call that differs from the nearest stored variant.
struct MissedFact {
    std::string fact, recorded, now;
    std::string cure; ///< may be empty
};

/// A call that no entry could serve, and the reasons at that time.
struct Miss {
    std::string time;   ///< ISO 8601, UTC
    std::string reason; ///< the same as in the log
    /// How the call ended: "recorded", "ran as it is", "refused", "thrown", "replayed" (the entry of another process)
    std::string end;
    std::string entry;          ///< the first digits of the guards digest that the call would have
    std::string nearest;        ///< the first digits of the variant with the fewest differences; "" without a variant
    std::uint64_t variants = 0; ///< number of variants on disk that could be read
    std::vector<MissedFact> differences{}; ///< facts that differ from `nearest`, at most 32
    std::uint64_t agree = 0;               ///< number of facts that agree with `nearest`
};

/// A cached function. Cheap to move; may outlive its Cache and its Device. Thread-safe: calls are enqueued one after
/// another.
class WARMGRAPH_API Function {
public:
    Function(Function&&) noexcept;
    Function& operator=(Function&&) noexcept;
    /// May run within the function's own callable: the call still gives its result, and nothing of it is recorded.
    ~Function();

    /// Enqueues the function in the device's default stream, or in `stream`, and returns without waiting for it. The
    /// first call loads or records. invalid_argument: an unknown, missing or repeated name, a buffer that is too small,
    /// a number that the declared type cannot hold or that is outside its range, or a call inside a wrapped function.
    /// miss_forbidden: the call misses, and the policy is require_hit or the function comes from Cache::load.
    /// partly_launched: the driver failed in the middle of the launch, or the caller's memory was damaged; start again
    /// from a known state. Exceptions of the wrapped callable pass through.
    Outcome operator()(std::initializer_list<Arg> args) { return call(std::span{args.begin(), args.size()}); }
    Outcome operator()(Stream& stream, std::initializer_list<Arg> args)
    {
        return call(stream, std::span{args.begin(), args.size()});
    }
    Outcome call(std::span<const Arg> args);
    Outcome call(Stream& stream, std::span<const Arg> args);
    /// Does the same as call(), for a caller that has just found Stream::is_capturing() to be false. The driver is not
    /// asked again, which saves 0.1 us of a call of 3 us. If the stream does capture, the driver ends that capture with
    /// an error.
    Outcome call_uncaptured(Stream& stream, std::span<const Arg> args);

    /// Moves a state to other memory of the same size. invalid_argument: no such state, another size, or a call within
    /// the function's own callable.
    void bind(std::string_view state, const MemoryRef& memory);

    /// Returns the report on the first call of the latest variant that was loaded or recorded. If a replay failed
    /// since, the report says why the function ran instead.
    [[nodiscard]] Report report() const;
    /// Returns the function's last 16 misses in this process, newest first. A folder that can be written keeps the last
    /// 16 of all processes, under every policy: `warmgraph explain` shows them. invalid_argument: a call within the
    /// function's own callable.
    [[nodiscard]] std::vector<Miss> misses() const;

    /// Returns the shapes that this process called the function with, the most frequent first, at most 512. Empty where
    /// no profile is kept.
    [[nodiscard]] std::vector<ProfiledShape> shapes() const;
    /// Returns the sizes that each of Spec::buckets pads to now, ascending. Empty for buckets that are fixed, or for
    /// which nothing was learnt yet.
    [[nodiscard]] std::vector<std::vector<std::int64_t>> buckets() const;

    struct Impl; ///< opaque

private:
    friend class Cache;
    explicit Function(std::shared_ptr<Impl> impl) noexcept;
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
