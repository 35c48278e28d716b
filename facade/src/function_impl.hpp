// Private parts of Function: the way of one call through the cache.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "accelerator.hpp"
#include "argument_reader.hpp"
#include "cache_impl.hpp"
#include "placeholder.hpp"
#include "recorder.hpp"
#include "warmgraph/capture/adoption.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/guards/call_guard.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// The device of a tensor in page-locked host memory, in its guards: copies differ, so it is another variant.
inline constexpr const char* k_host_memory = "host";

/// What is left to do when a variant that open_all restored is used for the first time.
struct Unused {
    std::shared_ptr<const Placeholder> placeholder; ///< where its inputs and outputs are until then; may be null
    double load_ms = 0, record_ms = 0;
};

/// A variant that is loaded in this process.
struct LoadedVariant {
    guards::CallGuard guard;
    std::unique_ptr<replay::Executable> executable;
    Digest guards;
    std::optional<Unused> unused{};
    bool only_here = false; ///< adopted and not published: it could not be loaded again
};

/// An entry on disk that open_all may restore.
struct OpenCandidate {
    Digest guards;
    cachefmt::Guards recorded;
    std::vector<TensorDecl> inputs;
    std::chrono::system_clock::time_point last_used;
    std::uint64_t placeholder_bytes = 0;
    std::optional<Error> damage; ///< the header cannot be read
};

struct Function::Impl {
    Impl(std::shared_ptr<Cache::Impl> cache, std::string name, std::shared_ptr<Device::Impl> device, Spec spec,
         Interface interface, Callable callable, const void* code);
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    [[nodiscard]] Outcome call(const std::shared_ptr<backends::Stream>& stream, std::span<const Arg> args);
    void bind(std::string_view state, const MemoryRef& memory);
    [[nodiscard]] Report report() const;
    /// Records a graph that somebody else captured. Throws what it refuses.
    void adopt(const Adoption& adoption);
    /// The entries on disk whose facts hold here; none under the policies off and refresh. Thread-safe, takes no lock.
    [[nodiscard]] std::vector<OpenCandidate> candidates() const;
    /// Restores one of them unless a call did so already; `placeholder` is null where none could be reserved. Thread-safe
    /// against calls. A failure was counted and logged.
    [[nodiscard]] Result<void> open(const OpenCandidate& candidate, std::shared_ptr<const Placeholder> placeholder,
                                    const std::stop_token& stop);
    /// What open() restored and no call used so far: takes from its first launch what can be done ahead. Thread-safe.
    [[nodiscard]] Result<void> upload(const Digest& guards, const std::stop_token& stop);
    /// Gives the name free: the function's handle is gone, whoever still works on it.
    void retire() noexcept;
    [[nodiscard]] const std::string& name() const noexcept { return m_name; }
    [[nodiscard]] const std::shared_ptr<backends::Device>& device() const noexcept { return m_device->device; }
    [[nodiscard]] const std::shared_ptr<backends::Stream>& default_stream() const noexcept
    {
        return m_device->default_stream;
    }

private:
    /// A call signature that runs as it is: asked and answered once, so that later calls cost no look-up.
    struct Verdict {
        Digest guards;
        Outcome outcome = Outcome::eager;
    };
    /// What one first call found out on its way.
    struct Journey {
        std::shared_ptr<backends::Stream> stream; ///< of the call
        cachefmt::Guards now;
        Digest digest;
        std::string miss; ///< why there is no usable entry
        bool tombstoned = false;
        std::optional<ErrorCode> load_failure; ///< an entry is there and unusable
        /// The function runs as it is, and nothing is recorded: the entry's graph meets a semaphore that this Spec does not
        /// declare (runs for recording would meet it too), or a registered module's variables hold something else than the
        /// entry has (a second recording would make it `recompiled` for everybody).
        bool must_not_record = false;
        Phases phases;
    };

    struct Restored {
        cachefmt::EntryHeader header;
        std::unique_ptr<replay::Executable> executable;
    };
    using Variants = std::list<LoadedVariant>;

    /// Does policy refresh bid to record anew? Without a callable it cannot.
    [[nodiscard]] bool refreshes() const noexcept { return m_policy == Policy::refresh && m_callable != nullptr; }
    [[nodiscard]] bool publishes() const noexcept
    {
        return m_cache->store && (m_policy == Policy::read_write || m_policy == Policy::refresh);
    }
    void refuse_nested_call(const RunContext& running) const;
    void refuse_inside_itself(std::string_view what) const;
    /// `why_not`: why an entry that is loaded cannot be used; "" when there is none.
    [[nodiscard]] Outcome first_call(const std::shared_ptr<backends::Stream>& stream, std::string why_not);
    [[nodiscard]] Outcome first_use(Variants::iterator variant, const std::shared_ptr<backends::Stream>& stream);
    void describe_call(Journey& journey);
    void end_report(const Journey& journey, std::chrono::steady_clock::time_point started);
    [[nodiscard]] Outcome miss(Journey& journey, const std::shared_ptr<backends::Stream>& stream);
    Outcome finish(const Journey& journey, Outcome outcome, std::string reason);
    [[nodiscard]] Outcome finish_eagerly(Journey& journey, Outcome outcome, std::string reason,
                                         const std::shared_ptr<backends::Stream>& stream);
    [[nodiscard]] bool try_hit(Journey& journey);
    [[nodiscard]] bool try_entry(Journey& journey, const cachefmt::EntryHeader& header);
    [[nodiscard]] bool load(Journey& journey, const cachefmt::EntryKey& key);
    /// nullopt: there is no such entry. Uses nothing that a call changes.
    [[nodiscard]] Result<std::optional<Restored>> restore(const cachefmt::EntryKey& key, store::Reading reading,
                                                          const std::vector<MemoryRef>& regions,
                                                          const std::vector<std::uint64_t>& scalars,
                                                          Phases& phases) const;
    /// With CacheOptions::verify_on_load, where there is a callable. A wrong entry is removed.
    [[nodiscard]] Result<void> verify(const Digest& digest, replay::Executable& executable,
                                      const std::shared_ptr<backends::Stream>& stream, Phases& phases);
    [[nodiscard]] Result<void> compare_with_function(replay::Executable& executable, Phases& phases);
    void count_hit(double load_ms, double record_ms);
    [[nodiscard]] bool is_loaded(const Digest& digest) const noexcept;
    [[nodiscard]] std::optional<OpenCandidate> candidate(const store::Variant& variant,
                                                         const std::vector<cachefmt::Fact>& facts) const;
    void explain_miss(Journey& journey, const std::vector<store::Variant>& variants);
    [[nodiscard]] Result<Recording> record_or_refuse(Journey& journey);
    [[nodiscard]] Outcome record_and_launch(Journey& journey, const std::shared_ptr<backends::Stream>& stream);
    enum class Waited : std::uint8_t { no, yes, failed };
    [[nodiscard]] Waited take_record_lock(Journey& journey, std::unique_ptr<FileLock>& lock);
    [[nodiscard]] bool wait_for_other_recorder(Journey& journey, std::unique_ptr<FileLock>& lock);
    [[nodiscard]] cachefmt::EntryHeader new_header(const Journey& journey) const;
    void count_refusal();
    [[nodiscard]] std::string keep_recording(Journey& journey, Recording& recording);
    void read_capture(const NativeCapture& capture, const Adoption& adoption, Frame& frame);
    [[nodiscard]] AdoptedCapture adopted_capture(const NativeCapture& capture, const Frame& frame) const;
    void require_adoptable(const Journey& journey) const;
    [[nodiscard]] std::string publish(Journey& journey, Recording& recording);
    /// `stream`: of the call; null for an adopted graph, which no callable can be compared with.
    [[nodiscard]] bool tombstone_if_different(const Recording& recording,
                                              const std::shared_ptr<backends::Stream>& stream);
    [[nodiscard]] bool differs_in_padding_only(const cachefmt::Graph& previous, const Recording& recording,
                                               const std::shared_ptr<backends::Stream>& stream);
    void run_eagerly(const std::shared_ptr<backends::Stream>& stream, Phases& phases);
    [[nodiscard]] Outcome run_instead(Variants::iterator failed, const Error& failure,
                                      const std::shared_ptr<backends::Stream>& stream);
    void order_after_last(const std::shared_ptr<backends::Stream>& stream);
    void keep(const cachefmt::Guards& guards, const Digest& digest, std::unique_ptr<replay::Executable> executable);
    [[nodiscard]] Result<void> launch(LoadedVariant& variant, const std::shared_ptr<backends::Stream>& stream);
    void cache_fault(std::string_view doing, const Error& error) const;
    [[nodiscard]] std::unique_lock<std::mutex> lock_unless(const std::stop_token& stop) const;
    [[nodiscard]] std::string label() const;

    mutable std::mutex m_mutex; // one call at a time: an exec's parameters and the scratch are shared by all calls
    std::shared_ptr<Cache::Impl> m_cache;
    std::string m_name;
    std::shared_ptr<Device::Impl> m_device;
    Spec m_spec;
    Interface m_interface;
    Callable m_callable;
    const void* m_code;
    Policy m_policy;
    cachefmt::FunctionKey m_key;
    std::vector<cachefmt::Fact> m_facts; // gathered at the first call
    ArgumentReader m_reader;
    Frame m_frame;
    replay::Bindings m_bindings;
    StreamPool m_streams;
    Runnable m_runnable;
    Subject m_subject;
    ScratchPool m_scratch; // of eager runs
    std::shared_ptr<backends::Stream> m_last_stream;
    Variants m_variants;           // most recently used first, unused ones last
    std::size_t m_most_variants;   // max_variants, or more when open_all restored more
    std::list<Verdict> m_verdicts; // likewise
    std::uint64_t m_registrations; // of modules, when what is loaded was bound
    Report m_report;
};

} // namespace warmgraph
