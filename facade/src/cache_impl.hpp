// Private parts of Cache: what its functions share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "counters.hpp"
#include "found_facts.hpp"
#include "kinds.hpp"
#include "known_places.hpp"
#include "pausing.hpp"
#include "prefetching.hpp"
#include "prepared.hpp"
#include "programs.hpp"
#include "shape_profile.hpp"
#include "touched.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/ranks/launcher.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/replay/module_cache.hpp"
#include "warmgraph/store/local_store.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// What the tuners of one cache counted: those that exist, and those that are gone. Thread-safe.
class Tunings {
public:
    void add(const Tuner::Impl& tuner);
    /// Before its end.
    void remove(const Tuner::Impl& tuner);
    [[nodiscard]] TuningStatistics total() const;

private:
    mutable std::mutex m_mutex; // taken before a tuner's own
    std::set<const Tuner::Impl*> m_tuners;
    TuningStatistics m_gone;
};

struct Cache::Impl {
    CacheOptions options; ///< without the keys, which `trust` has
    cachefmt::Trust trust;
    cachefmt::Rank rank;
    Policy policy = Policy::read_write;
    store::KindSet kinds; ///< that are switched on
    guards::Relaxation relaxation;
    bool verifies_first = false;              ///< the first use of each restored graph
    std::uint64_t verify_every = 0;           ///< each Nth call that is replayed; 0: none
    std::shared_ptr<store::LocalStore> store; ///< null when caching is off
    std::shared_ptr<Programs> programs;       ///< uses the store
    std::string directory;
    std::string disabled_reason;
    replay::ModuleCache modules;
    Counters counters;
    Tunings tunings;
    std::mutex mutex; ///< guards functions
    /// Those that exist, by name; null while one is being made.
    std::map<std::string, std::weak_ptr<Function::Impl>> functions;
    mutable std::mutex model_mutex;
    mutable std::map<std::string, std::string, std::less<>>
        models;                           ///< model_info() by backend: each function asks; guarded by model_mutex
    std::set<std::string> told_what_fits; ///< ids of devices; guarded by mutex
    std::string why_code_is_kept;         ///< to the end, as an earlier process lost a recording; guarded by mutex
    QuietCalls quiet;
    /// What callers refused to have recorded, by function and reason: the miss that is noted anew each time; guarded by
    /// mutex.
    std::map<std::pair<std::string, std::string>, store::Miss> refused_by_callers;
    Touched touched;
    PreparedGraphs prepared;
    KnownPlaces places;
    FoundFacts found;
    std::unique_ptr<ProfileKeeper>
        profiles; ///< null: no profiles are kept. After the store and the counters, which it uses
    std::unique_ptr<Prefetching> prefetching = std::make_unique<Prefetching>(); ///< last: it uses the others

    /// Everything that Cache's constructor does, with the file seam open.
    [[nodiscard]] static std::shared_ptr<Impl> open(const CacheOptions& options, FileSystem& files);
    /// False where nobody who asks for signatures, as it does itself, would use what it publishes.
    [[nodiscard]] bool may_publish() const noexcept { return !trust.require || trust.sign_with; }
    /// Whether an entry may be looked for.
    [[nodiscard]] bool looks_for_graphs(Policy by) const noexcept
    {
        return store && kinds.contains(store::ArtifactKind::entries) && by != Policy::off && by != Policy::refresh;
    }
    /// The folder of this model on a backend.
    [[nodiscard]] std::string model_info(std::string_view backend) const;
    [[nodiscard]] std::string_view shape_mode() const noexcept;
    [[nodiscard]] cachefmt::FunctionKey key(const std::string& function, const backends::Device& device) const;
    [[nodiscard]] Statistics statistics() const;
    [[nodiscard]] std::string summary() const;
    /// What stands in the way of Cache::pause_recording in this cache; empty: nothing (pausing.cpp).
    [[nodiscard]] std::string why_not_paused();
    /// A call was replayed; pauses when many were, in a row.
    void note_replay() noexcept;
    /// One line in the log, at info, for each device: how many stored entries fit it, and why others do not.
    void tell_what_fits(const backends::Device& device);
    /// Stored code and constants by digest. It keeps the store.
    [[nodiscard]] replay::ImageSource image_source() const;
    /// CacheOptions::bundles as layers of the store; how many could be opened.
    std::size_t open_bundles(const std::vector<std::uint32_t>& owners);
    /// Whether one of this name is wrapped or loaded.
    [[nodiscard]] bool has_function(const std::string& name);
    /// Those that exist now.
    [[nodiscard]] std::vector<std::shared_ptr<Function::Impl>> living_functions();
};

/// Cache::pause_recording_of (pausing.cpp).
[[nodiscard]] std::string pause_recording_of_all(std::span<Cache::Impl* const> caches);

/// For tests: a cache on another file system, and what is in it.
struct CacheAccess {
    static Cache open(const CacheOptions& options, FileSystem& files)
    {
        return Cache{Cache::Impl::open(options, files)};
    }
    static const std::shared_ptr<Cache::Impl>& impl(const Cache& cache) noexcept { return cache.m_impl; }
};

/// Where an entry keeps Spec::metadata.
inline constexpr const char* k_metadata_fact = "caller.metadata";

/// The fact that says what Interface::text() does.

/// Facts by which the code of a function is known: Spec::recorded_code.
[[nodiscard]] bool is_code_fact(std::string_view name) noexcept;

/// Of the facts that a device tells, those that an entry has otherwise: the rest is the functions' own. `here` is
/// canonical.
[[nodiscard]] std::vector<guards::Mismatch> device_mismatches(const cachefmt::Guards& recorded,
                                                              const std::vector<cachefmt::Fact>& here,
                                                              const guards::Relaxation& relaxation);

/// What the variables that the Spec names hold now, in its order; "(unset)" for none.
[[nodiscard]] std::vector<std::string> environment_of(const Spec& spec);

/// The facts of a function here and now, canonical. `interface` is Interface::text().
[[nodiscard]] std::vector<cachefmt::Fact> gather_facts(const Cache::Impl& cache, const std::string& function,
                                                       const Spec& spec, const backends::Device& device,
                                                       const std::string& interface, const void* code);

} // namespace warmgraph
