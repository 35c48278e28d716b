// Private parts of Function: the way of one call through the cache.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "argument_reader.hpp"
#include "cache_impl.hpp"
#include "device_impl.hpp"
#include "half.hpp"
#include "job.hpp"
#include "loaded_variant.hpp"
#include "padding.hpp"
#include "phase_times.hpp"
#include "plan.hpp"
#include "recorder.hpp"
#include "shape_profile.hpp"
#include "warmgraph/capture/adoption.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/guards/call_guard.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// The device of a tensor in page-locked host memory, in its guards: copies differ, so it is another variant.
inline constexpr const char* k_host_memory = "host";

/// An entry on disk that open_all may restore.
struct OpenCandidate {
    Digest guards_digest;
    cachefmt::Guards recorded;
    std::vector<TensorDecl> inputs;
    std::chrono::system_clock::time_point last_used;
    std::uint64_t placeholder_bytes = 0;
    std::optional<Error> damage; ///< the header cannot be read
};

/// How long a first call waits for work that was enqueued before it. Copies of what the function may write need that;
/// such work may in turn wait for this very thread, so the wait ends.
inline constexpr std::chrono::seconds k_wait_for_earlier_work{1};

/// false: it is not done in time.
[[nodiscard]] Result<bool> is_idle(backends::Stream& stream, std::chrono::nanoseconds limit = k_wait_for_earlier_work);

struct Function::Impl {
    Impl(std::shared_ptr<Cache::Impl> cache, std::string name, std::shared_ptr<Device::Impl> device, Spec spec,
         Interface interface, Callable callable, const void* code, std::unique_ptr<HalfContext> half = nullptr);
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    [[nodiscard]] Outcome call(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args,
                               replay::AskedCapture asked = replay::AskedCapture::no);
    void bind(std::string_view state, const MemoryRef& memory);
    [[nodiscard]] Report report() const;
    [[nodiscard]] std::vector<Miss> misses() const;
    [[nodiscard]] std::vector<ProfiledShape> shapes() const;
    [[nodiscard]] std::vector<std::vector<std::int64_t>> buckets() const;
    /// Throws for a function of another cache than `owner`.
    [[nodiscard]] ProfileRecording record_profile(const Cache::Impl& owner, const MakeArguments& make,
                                                  std::size_t most);
    /// Records a graph that somebody else captured. Throws what it refuses.
    void adopt(const Adoption& adoption);
    /// The name of the file. Throws what it refuses.
    [[nodiscard]] std::string write_capture(const Adoption& adoption);
    /// The entries on disk whose facts hold here; none under the policies off and refresh. Thread-safe, takes no lock.
    [[nodiscard]] std::vector<OpenCandidate> candidates() const;
    /// Restores one of them unless a call did so already; `placeholder` is null where none could be reserved.
    /// Thread-safe against calls. A failure was counted and logged.
    [[nodiscard]] Result<void> open(const OpenCandidate& candidate, std::shared_ptr<const Placeholder> placeholder,
                                    replay::Instantiation instantiation, const std::stop_token& stop);
    /// Of what open() restored: instantiates what was left for later, and takes from a first call that did not come so far
    /// what can be done ahead. Thread-safe.
    [[nodiscard]] Result<void> upload(const Digest& guards, const std::stop_token& stop);
    /// Is it restored, and was it not called yet? Also while a call of the function is under way.
    [[nodiscard]] bool is_unused(const Digest& guards) const;
    /// Records what waits for its moment. Returns 1 where something was recorded, 0 where nothing waits, or its answer
    /// is not done yet.
    std::size_t record_pending();
    // Of a half of a pair (function_half.cpp).
    [[nodiscard]] HalfContext& half() noexcept { return *m_half; }
    [[nodiscard]] const Interface& interface() const noexcept { return m_interface; }
    /// Before any lock is taken: invalid_argument inside a wrapped callable.
    void refuse_nested() const;
    struct Served {
        Digest guards_digest;
        bool waits = false; ///< a forward half that no entry has yet
    };
    /// The variant that the last call was answered by, or made; nullopt where it ran as it is.
    [[nodiscard]] std::optional<Served> served() const;
    /// A forward half whose backward is there from now on.
    void end_wait(const Digest& forward);
    /// A forward half whose backward cannot be recorded: it runs as it is, too.
    void give_up(const Digest& forward);
    /// What backward has for a forward half that was recorded anew.
    void forget(const Digest& forward);
    /// Scratch of runs as it is.
    [[nodiscard]] std::vector<NamedMemory> scratch_memory() const;
    /// Gives the name free: the function's handle is gone, whoever still works on it. The callable is not run again.
    void retire() noexcept;
    [[nodiscard]] const std::string& name() const noexcept { return m_name; }
    [[nodiscard]] const cachefmt::FunctionKey& key() const noexcept { return m_key; }
    /// It was called, and what became of that call is known.
    [[nodiscard]] bool is_settled() const noexcept { return m_is_settled; }
    [[nodiscard]] const std::shared_ptr<backends::Device>& device() const noexcept { return m_device->device; }
    [[nodiscard]] const std::shared_ptr<backends::Stream>& default_stream() const noexcept
    {
        return m_device->default_stream;
    }

private:
    /// A call signature that runs as it is: asked and answered once, so that later calls cost no look-up.
    struct Verdict {
        Digest guards_digest;
        Outcome outcome = Outcome::eager;
    };
    struct Restored {
        cachefmt::EntryHeader header;
        std::unique_ptr<replay::Executable> executable;
        std::unique_ptr<store::LoadMark> mark;            ///< the load goes on to the first launch; null: none is noted
        std::shared_ptr<const Placeholder> placeholder{}; ///< where its regions are until the first launch; or null
    };
    /// Why a stored entry is not used.
    struct Unusable {
        std::string reason;
        ErrorCode code = ErrorCode::not_found;
        /// The function runs as it is, and nothing is recorded: the entry's graph meets a semaphore that this Spec does
        /// not declare (runs for recording would meet it too), or a registered module's variables hold something else
        /// than the entry has (a second recording would make it `recompiled` for everybody).
        bool must_not_record = false;
    };
    /// The relation of the entry on disk to a new recording under the same guards.
    struct Stored {
        enum class Is : std::uint8_t {
            nothing,    ///< not there, the same graph, or nothing that can be restored or run: it is replaced
            as_good,    ///< it differs in what does not count, and does the same: it stands
            recompiled, ///< another one: both are refused
        };
        Is is = Is::nothing;
        std::vector<std::string> difference{}; ///< of what is recompiled
    };
    using Variants = std::list<LoadedVariant>;
    enum class Remember : std::uint8_t { no, yes };
    enum class Counted : std::uint8_t { no, yes }; ///< in the shape profile

    [[nodiscard]] bool publishes() const noexcept
    {
        return m_cache->store &&
               (m_policy == Policy::read_write || m_policy == Policy::refresh || m_policy == Policy::no_compile);
    }
    void refuse_nested_call(const RunContext& running) const;
    void refuse_inside_itself(std::string_view what) const;
    [[nodiscard]] std::string label() const;
    void cache_fault(std::string_view doing, const Error& error) const;

    // A call (function.cpp). `job`: what is left to do when the locks are free again.
    [[nodiscard]] Outcome call(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args,
                               Counted counted, replay::AskedCapture asked);
    [[nodiscard]] Outcome call_locked(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args,
                                      Counted counted, replay::AskedCapture asked, std::unique_ptr<Job>& job);
    [[nodiscard]] Outcome call_read(const std::shared_ptr<backends::Stream>& stream, std::unique_ptr<Job>& job);
    [[nodiscard]] Outcome run_into_capture(const std::shared_ptr<backends::Stream>& stream);
    [[nodiscard]] Outcome run_unused(const std::shared_ptr<backends::Stream>& stream, std::string why);
    [[nodiscard]] Outcome run_unused(const LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream);
    void notice_changes();
    void forget_loaded(std::string_view why);
    [[nodiscard]] Outcome first_call(const std::shared_ptr<backends::Stream>& stream, std::string why_not,
                                     std::unique_ptr<Job>& job);
    [[nodiscard]] Outcome first_use(Variants::iterator variant, const std::shared_ptr<backends::Stream>& stream,
                                    std::unique_ptr<Job>& job);
    [[nodiscard]] Situation situation(const cachefmt::Guards& now) const;
    [[nodiscard]] Headers headers(const Digest& digest) const;
    /// Of the function, here and now.
    [[nodiscard]] std::vector<cachefmt::Fact> facts() const;
    void describe_call(Journey& journey);
    void add_half_facts(std::vector<cachefmt::Fact>& facts) const;
    void instantiate_behind(LoadedVariant& variant, Phases& phases) const;
    [[nodiscard]] Outcome act(const Plan& plan, Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                              std::unique_ptr<Job>& job);
    [[nodiscard]] Outcome miss(const Plan& plan, Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                               std::unique_ptr<Job>& job);
    void count_miss(const Plan& plan, Journey& journey);
    void begin_miss(Journey& journey, std::string reason, const Judgement& judgement) const;
    void note_miss(const Journey& journey, store::MissEnd end);
    Outcome finish(const Journey& journey, Outcome outcome, std::string reason, Remember remember);
    [[nodiscard]] Outcome finish_eagerly(Journey& journey, Outcome outcome, std::string reason, Remember remember,
                                         const std::shared_ptr<backends::Stream>& stream);
    void validate_tuned() const;
    RunContext run_eagerly(const std::shared_ptr<backends::Stream>& stream, Phases& phases);
    [[nodiscard]] Outcome run_instead(Variants::iterator failed, const Error& failure,
                                      const std::shared_ptr<backends::Stream>& stream);
    void order_after_last(const std::shared_ptr<backends::Stream>& stream);
    void keep(LoadedVariant variant);
    [[nodiscard]] LoadedVariant variant_of(const cachefmt::Guards& guards, const Digest& digest,
                                           std::unique_ptr<replay::Executable> executable) const;
    [[nodiscard]] Result<void> launch(LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream,
                                      replay::AskedCapture asked = replay::AskedCapture::no);
    [[nodiscard]] bool is_to_verify(const LoadedVariant& variant) const noexcept;

    // Shapes: counted, padded, recorded ahead (function_shapes.cpp)
    [[nodiscard]] Outcome call_padded(const std::shared_ptr<backends::Stream>& stream, Counted counted,
                                      std::unique_ptr<Job>& job);
    [[nodiscard]] Outcome run_outside_buckets(const std::string& why, const std::shared_ptr<backends::Stream>& stream);
    void begin_counting();
    /// REQUIRES: m_mutex, and m_is_counted.
    [[nodiscard]] const std::shared_ptr<FunctionProfile>& profile() const;
    void refuse_unpadded() const;
    void count_call(const PaddedSizes* padded);
    [[nodiscard]] profile::Shape shape_of_call(const PaddedSizes* padded) const;
    [[nodiscard]] profile::Profile joined_profile();
    void learn_buckets(const profile::Profile& known);
    [[nodiscard]] std::vector<ProfiledShape> shapes_to_record(const profile::Profile& known) const;
    void record_shape(const ProfiledShape& shape, const MakeArguments& make, ProfileRecording& result);
    [[nodiscard]] std::string why_no_profile_is_recorded() const;

    // Restoring stored entries (lookup.cpp)
    [[nodiscard]] std::expected<LoadedVariant, Unusable> load(const cachefmt::EntryKey& key, backends::Stream& stream,
                                                              Phases& phases);
    /// nullopt: there is no such entry. Uses nothing that a call changes.
    [[nodiscard]] Result<std::optional<Restored>> restore(
        const cachefmt::EntryKey& key, store::Reading reading, const std::vector<MemoryRef>& regions,
        const std::vector<std::uint64_t>& scalars, Phases& phases,
        replay::Instantiation instantiation = replay::Instantiation::at_restore) const;
    /// What Cache::prefetch restored of it; waits for what is under way. nullopt: nothing that fits.
    [[nodiscard]] std::optional<Prepared> prepared(const cachefmt::EntryKey& key, Phases& phases) const;
    /// Whether the function can use the entry here and now. One that it cannot goes, for other processes, too.
    [[nodiscard]] Result<void> check_stored(const cachefmt::EntryKey& key, const cachefmt::EntryHeader& header,
                                            const cachefmt::Graph& graph) const;
    /// Counts and logs those that a look-up refused for their signature.
    void note_untrusted(const std::vector<store::Variant>& variants) const;
    void note_launch(LoadedVariant& variant, backends::Stream& stream) const noexcept;
    void end_load(LoadedVariant& variant) const noexcept;
    [[nodiscard]] Result<void> check_constants(const replay::Executable& executable, backends::Stream& stream) const;
    void withdraw(const cachefmt::EntryKey& key) const;
    void forget_exposed();
    void count_hit(LoadedVariant& variant);
    [[nodiscard]] bool is_loaded(const Digest& digest) const noexcept;
    [[nodiscard]] std::optional<OpenCandidate> candidate(const store::Variant& variant,
                                                         const std::vector<cachefmt::Fact>& facts) const;

    // Recording around the call's own answer (answering.cpp)
    [[nodiscard]] Outcome answer_and_record(Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                                            std::unique_ptr<Job>& job);
    [[nodiscard]] Outcome answer_and_verify(LoadedVariant variant, Journey& journey,
                                            const std::shared_ptr<backends::Stream>& stream, std::unique_ptr<Job>& job);
    [[nodiscard]] std::unique_ptr<Job> new_job(Journey& journey) const;
    [[nodiscard]] Result<void> prepare(Job& job, const std::shared_ptr<backends::Stream>& stream) const;
    void answer(Job& job, const std::shared_ptr<backends::Stream>& stream);
    /// What cannot be prepared is refused, and answered all the same. What the callable throws ends the job.
    void prepare_and_answer(std::unique_ptr<Job>& job, const std::shared_ptr<backends::Stream>& stream);
    [[nodiscard]] Result<void> check_programs(const RunContext& context) const;
    [[nodiscard]] Outcome defer(std::unique_ptr<Job>& job, std::string why);
    /// One of its recordings or comparisons waits for its moment, or is under way.
    [[nodiscard]] bool has_pending() const noexcept { return m_pending != nullptr || m_is_recording; }
    [[nodiscard]] Outcome run_beside_pending(Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                                             std::unique_ptr<Job>& job);
    [[nodiscard]] std::unique_ptr<Job> take_pending(backends::Stream& stream);
    [[nodiscard]] Outcome complete(Job& job);
    [[nodiscard]] Outcome complete_verification(Job& job);
    [[nodiscard]] Outcome complete_recording(Job& job);
    [[nodiscard]] Result<Recording> record(Job& job) const;
    [[nodiscard]] Stored stored_beside(const Recording& recording, Job& job);
    [[nodiscard]] Outcome refuse(Job& job, const Error& error);
    [[nodiscard]] Outcome refuse_locked(Job& job, const Error& error);

    // Publishing (publication.cpp)
    [[nodiscard]] cachefmt::EntryHeader new_header(const Journey& journey) const;
    void count_refusal(std::string_view reason);
    [[nodiscard]] Result<void> check_facts_again(const Job& job) const;
    [[nodiscard]] Result<Stored> judge_stored(const cachefmt::Entry& recorded, const Frame& frame,
                                              const HoldToAnswer& hold);
    [[nodiscard]] std::string publish_tombstone(const cachefmt::Entry& recorded, const Stored& stored);
    [[nodiscard]] std::string publish(Phases& phases, Recording& recording, const Stored& stored);

    // Adoption (function_adoption.cpp)
    void wait_for_record_lock(const Journey& journey, std::unique_ptr<FileLock>& lock);
    [[nodiscard]] std::string keep_recording(Journey& journey, Recording& recording, const Stored& stored);
    void read_capture(const NativeCapture& capture, const Adoption& adoption, Frame& frame);
    [[nodiscard]] AdoptedCapture adopted_capture(const NativeCapture& capture, const Frame& frame) const;
    void require_adoptable(const Journey& journey) const;
    [[nodiscard]] Result<Recording> adopted(const Adoption& adoption, const AdoptedCapture& first,
                                            const AdoptedCapture* second, Journey& journey, Stored& stored);
    [[nodiscard]] Result<Recording> adopted_with_others(const AdoptedCapture& first, AdoptOptions options,
                                                        const std::string& folder, Journey& journey);

    void end_report(const Journey& journey);
    [[nodiscard]] std::unique_lock<std::mutex> lock_unless(const std::stop_token& stop) const;

    mutable std::mutex m_mutex; // one call at a time: an exec's parameters and the scratch are shared by all calls
    std::shared_ptr<Cache::Impl> m_cache;
    std::unique_ptr<HalfContext> m_half; // null where it is no half of a pair
    std::shared_ptr<Shelf> m_shelf;
    std::string m_name;
    std::string m_label; // "model/function", as the command takes it
    std::shared_ptr<Device::Impl> m_device;
    Spec m_spec;
    Interface m_interface;
    Callable m_callable;
    const void* m_code;
    Policy m_policy;
    cachefmt::FunctionKey m_key;
    std::vector<cachefmt::Fact> m_facts;    // gathered at the first call, and when the environment changed
    std::vector<std::string> m_environment; // what Spec::environment named, at the last call
    ArgumentReader m_reader;
    Frame m_frame;
    replay::Bindings m_bindings;
    StreamPool m_streams;
    ProgramUse m_programs;
    Runnable m_runnable;
    Subject m_subject;
    ScratchPool m_scratch;                      // of eager runs
    std::deque<ScratchPool> m_captured_scratch; // of runs in the caller's own captures: his graphs keep using it
    mutable std::mutex m_callable_mutex;        // one run of the callable at a time; taken after m_mutex, or alone
    std::unique_ptr<Job> m_pending;             // a recording or comparison that waits for its moment
    std::set<Digest> m_strayed; // guards digests of calls that were refused for work past the recorder's stream
    std::atomic<bool> m_is_settled = false;
    std::atomic<bool> m_is_retired = false;
    bool m_is_recording = false; // a call of it is being recorded or compared
    std::shared_ptr<LastStream> m_last;
    std::optional<Served> m_served;
    Variants m_variants;                     // most recently used first, unused ones last
    std::size_t m_most_variants;             // max_variants, or more when open_all restored more
    std::list<Verdict> m_verdicts;           // likewise
    std::uint64_t m_registrations;           // of modules, when what is loaded was bound
    std::uint64_t m_exposures;               // of their variables, likewise
    std::optional<ErrorCode> m_load_failure; // of a function without a callable: why its entry cannot be used
    Report m_report;
    std::vector<store::Miss> m_misses;                  // of this process, newest first
    bool m_is_counted = false;                          // its calls' shapes are
    std::vector<std::size_t> m_counted;                 // inputs and outputs
    mutable std::shared_ptr<FunctionProfile> m_profile; // profile(), once it was asked for
    mutable ShapeCounter m_counter;                     // what it has not told yet
    ShapeCounter::Key m_shape, m_declared_shape;        // of this call; of the declaration
    std::unique_ptr<Padding> m_padding;                 // null: nothing is padded
    bool m_knows_buckets = false;                       // they were looked for
};

} // namespace warmgraph
