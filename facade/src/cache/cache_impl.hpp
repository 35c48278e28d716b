// Private parts of Cache: the objects that its functions share.
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

#include "cache/cache_settings.hpp"
#include "cache/compatibility_log.hpp"
#include "cache/function_names.hpp"
#include "warmgraph/autotune/tuner_impl.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/call/counters.hpp"
#include "warmgraph/call/recording_pause.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/facade/cache_access.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/guards/interface_text.hpp"
#include "warmgraph/preload/preload_entry.hpp"
#include "warmgraph/preload/preload_queue.hpp"
#include "warmgraph/profile/shape_profile.hpp"
#include "warmgraph/ranks/launcher.hpp"
#include "warmgraph/remote/attach.hpp"
#include "warmgraph/remote/lasting_counts.hpp"
#include "warmgraph/remote/uploads.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/replay/module_cache.hpp"
#include "warmgraph/store/local_store.hpp"
#include "warmgraph/store/settings.hpp"
#include "warmgraph/store/touched_names.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// The part of a cache that restores entries before their calls.
struct CachePreload {
    PreloadState state;
    PreloadQueue queue; ///< declared last, because it uses the state
};

struct Cache::Impl {
    CacheSettings settings;
    std::shared_ptr<store::LocalStore> store;                 ///< null if caching is off
    std::vector<std::shared_ptr<remote::RemoteTier>> remotes; ///< layers of the store
    std::unique_ptr<remote::LastingCounts> remote_counts;     ///< ends after the uploads that it counts
    std::unique_ptr<remote::Uploads>
        uploads; ///< null: nothing is sent. Declared after the store and the remotes, which it uses
    std::shared_ptr<Programs> programs; ///< uses the store
    replay::ModuleCache modules;
    Counters counters;
    Tunings tunings;
    FunctionNames functions;
    RecordingPause pause;
    store::TouchedNames touched;
    CompatibilityLog fit;
    std::unique_ptr<ProfileKeeper>
        profiles;         ///< null: no profiles are kept. Declared after the store and the counters, which it uses
    CachePreload preload; ///< declared last, because it uses the members above

    /// Implements Cache's constructor, with `files` as the file system.
    [[nodiscard]] static std::shared_ptr<Impl> open(const CacheOptions& options, FileSystem& files);
    /// Whether calls with this policy may look for entries.
    [[nodiscard]] bool looks_for_entries(Policy by) const noexcept { return store && settings.looks_for_entries(by); }
    [[nodiscard]] Statistics statistics() const;
    [[nodiscard]] std::string summary() const;
    /// Returns why this cache needs device code to be kept; empty: it does not (pausing.cpp).
    [[nodiscard]] std::string why_not_paused();
    /// Call this after each replay; pauses recording after many replays in a row.
    void note_replay() noexcept;
    /// Returns stored code and constants by digest. The result keeps the store alive.
    [[nodiscard]] replay::ImageSource image_source() const;
    /// Returns the parts of this cache that a tuner uses. `self`: a pointer to this object, which the tuner keeps.
    [[nodiscard]] TunerSources tuner_sources(std::shared_ptr<Impl> self);
    /// Adds CacheOptions::bundles as layers of the store. Returns how many could be opened.
    std::size_t open_bundles(const std::vector<std::uint32_t>& owners);
};

using guards::k_interface_fact;

/// The fact in which an entry stores Spec::metadata.
inline constexpr const char* k_metadata_fact = "caller.metadata";

/// Whether the fact identifies a function's code and belongs to Spec::recorded_code.
[[nodiscard]] bool is_code_fact(std::string_view name) noexcept;

/// Returns the present facts of a function, in canonical form. `interface` is Interface::text().
[[nodiscard]] std::vector<cachefmt::Fact> gather_facts(const Cache::Impl& cache, const std::string& function,
                                                       const Spec& spec, const backends::Device& device,
                                                       const std::string& interface, const void* code);

} // namespace warmgraph
