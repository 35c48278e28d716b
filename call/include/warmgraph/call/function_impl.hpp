// The private parts of Function. Each part owns its state and knows no other part; each call gives a part the data that
// the part needs. Function::Impl holds the parts, the lock, and the order in which a call uses the parts.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "warmgraph/call/call_arguments.hpp"
#include "warmgraph/call/call_outcomes.hpp"
#include "warmgraph/call/call_shapes.hpp"
#include "warmgraph/call/callable_runner.hpp"
#include "warmgraph/call/declaration.hpp"
#include "warmgraph/call/loaded_variants.hpp"
#include "warmgraph/call/lookup.hpp"
#include "warmgraph/call/record_jobs.hpp"
#include "warmgraph/call/surroundings.hpp"
#include "warmgraph/pairs/pair_role.hpp"

namespace warmgraph {

struct Function::Impl {
    /// Makes the parts from the cache's settings (making.cpp). No other function knows both the cache and the parts.
    Impl(std::shared_ptr<Cache::Impl> cache, std::shared_ptr<const Declaration> declaration,
         std::unique_ptr<PairRole> role);

    /// Implements Function::call. `counts`: whether the call counts in the profile of shapes.
    [[nodiscard]] Outcome call(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args,
                               replay::AskedCapture asked = replay::AskedCapture::no, bool counts = true);
    /// Locks the mutex for a request from outside. `asking` names the request. Throws inside the function's own
    /// callable, which already holds the lock.
    [[nodiscard]] std::unique_lock<std::mutex> lock(std::string_view asking) const;
    /// Completes the recording that waits for its answer. Returns 1 if something was recorded, 0 if nothing waits or if
    /// the answer is not done.
    std::size_t record_pending();
    /// Calls the function with these shapes, so that missing variants are recorded.
    [[nodiscard]] ProfileRecording record(const std::vector<ProfiledShape>& shapes, const MakeArguments& make);
    /// Records a graph that other code captured. Throws if the graph is refused.
    void adopt(const Adoption& adoption);
    /// Writes the capture for other processes and returns the file's name. Throws if the capture is refused.
    [[nodiscard]] std::string write_capture(const Adoption& adoption);

    mutable std::mutex mutex; ///< one call at a time, because all calls share the exec's parameters and the scratch
    const std::shared_ptr<Cache::Impl> cache; ///< kept alive because the parts use the cache
    const std::shared_ptr<const Declaration> declaration;
    const std::unique_ptr<PairRole> role; ///< null unless the function is half of a pair
    // The parts, used under the mutex unless their comments say otherwise.
    CallArguments arguments;
    CallableRunner runner;
    LoadedVariants loaded;
    Surroundings surroundings;
    const Lookup lookup;
    RecordJobs jobs;
    CallShapes shapes;
    CallOutcomes outcomes;

private:
    using Stream = std::shared_ptr<backends::Stream>;
    using NextJob = std::unique_ptr<RecordJob>; ///< work that remains after the lock is released

    [[nodiscard]] Outcome call_locked(const Stream& stream, std::span<const Arg> args, replay::AskedCapture asked,
                                      bool counts, NextJob& job);
    [[nodiscard]] Outcome call_padded(const Stream& stream, bool counts, NextJob& job);
    [[nodiscard]] Outcome call_read(const Stream& stream, NextJob& job);
    [[nodiscard]] Outcome serve_first_call(const Stream& stream, std::string why_not, NextJob& job);
    [[nodiscard]] Outcome replay_stored(const Plan& plan, FirstCall& first_call, const Stream& stream, NextJob& job);
    [[nodiscard]] Outcome miss(const Plan& plan, FirstCall& first_call, const Stream& stream, NextJob& job);
    [[nodiscard]] Outcome answer_and_record(FirstCall& first_call, const Stream& stream, NextJob& job);
    [[nodiscard]] Outcome answer_and_verify(std::optional<LoadedVariant> variant, FirstCall& first_call,
                                            const Stream& stream, NextJob& job);
    [[nodiscard]] Outcome run_as_it_is(const Stream& stream, std::string why, const Digest* entry = nullptr);
    [[nodiscard]] Outcome run_instead(LoadedVariants::Iterator failed, const Error& failure, const Stream& stream);
    [[nodiscard]] Outcome run_missed(FirstCall& first_call, Outcome outcome, std::string why, Remember remember,
                                     const Stream& stream);
    Outcome complete(RecordJob& job);
};

} // namespace warmgraph
