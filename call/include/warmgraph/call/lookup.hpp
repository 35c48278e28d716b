// The entries on disk for a function: decides whether they fit a call, and restores them.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/call/counters.hpp"
#include "warmgraph/call/faults.hpp"
#include "warmgraph/call/plan.hpp"
#include "warmgraph/call/record_job.hpp"
#include "warmgraph/pairs/pair_role.hpp"
#include "warmgraph/preload/preload_entry.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph {

/// An entry on disk that may be restored before the first call that uses it.
struct PreloadCandidate {
    Digest guards_digest;
    std::vector<TensorDecl> inputs;
    std::chrono::system_clock::time_point last_used;
    std::optional<Error> damage; ///< the error, if the header cannot be read
};

struct RestoredEntry {
    cachefmt::EntryHeader header;
    std::unique_ptr<replay::Executable> executable;
    std::unique_ptr<store::LoadMark> mark; ///< the mark of the load, which lasts until the first launch; null: no mark
    std::shared_ptr<const Placeholder> placeholder{}; ///< the regions' addresses until the first launch; may be null
    bool is_preloaded = false;                        ///< whether it was preloaded for this function
};

/// Why a stored entry is not used.
struct EntryRefusal {
    std::string reason;
    ErrorCode code = ErrorCode::not_found;
    /// The function runs without a graph, and nothing is recorded: the Spec does not declare a semaphore of the entry's
    /// graph (runs for a recording would use the semaphore too), or a registered module's variables differ from the
    /// entry's (a second recording would mark the entry `recompiled` for all processes).
    bool must_not_record = false;
};

/// Stateless and thread-safe; takes no lock, and changes only the folder.
class Lookup {
public:
    struct Sources {
        std::shared_ptr<store::LocalStore> store; ///< null if caching is off
        std::string why_off;                      ///< why caching is off
        bool uses_graphs = true;                  ///< false: graphs are switched off
        guards::Relaxation relaxation;
        replay::ImageSource images;
        std::optional<cachefmt::Part> part; ///< which half of a pair the function is; nullopt for a single function
        // The members below must outlive this object.
        Counters& counters;
        PreloadState& preload;
        replay::ModuleCache& modules;
    };
    Lookup(std::shared_ptr<const Declaration> declaration, Sources sources);

    /// Decides what to do for a call with these guards. `has_pending`: whether one of the function's recordings is not
    /// done.
    [[nodiscard]] Plan decide(const FirstCall& first_call, bool has_pending) const;
    /// Decides what to do if nothing can be replayed for this reason.
    [[nodiscard]] Plan on_miss(const FirstCall& first_call, bool has_pending, std::string reason) const;

    /// Preloading pauses while the returned object lives.
    [[nodiscard]] PreloadedGraphs::PreloadPause pause_preloading() const
    {
        return PreloadedGraphs::PreloadPause{m_sources.preload.graphs};
    }
    /// Restores an entry whose guards hold, for this call; launches nothing. If that fails, counts and logs the
    /// failure.
    [[nodiscard]] std::expected<LoadedVariant, EntryRefusal> load(const cachefmt::EntryKey& key, const Frame& frame,
                                                                  backends::Stream& stream, Phases& phases) const;
    /// Restores the entry. Returns nullopt if there is no such entry.
    [[nodiscard]] Result<std::optional<RestoredEntry>> restore(const cachefmt::EntryKey& key,
                                                               store::ReadPurpose reading, const Frame& frame,
                                                               Phases& phases) const;
    /// Checks that this function may use the entry. Sets aside an entry of another function (LocalStore::set_aside).
    [[nodiscard]] Result<void> check_stored(const cachefmt::EntryHeader& header, const cachefmt::Graph& graph) const;
    /// Checks that this process's constants have the entry's contents.
    [[nodiscard]] Result<void> check_constants(const replay::Executable& executable, backends::Stream& stream) const;
    /// Whether the variant may still be replayed after the program asked for the address of a variable. False: the
    /// variant uses that variable, or code that can no longer be checked.
    [[nodiscard]] bool is_still_valid(const LoadedVariant& variant) const;
    /// Notes on disk that a load is under way until the mark ends. Error: earlier processes died during this load.
    [[nodiscard]] Result<std::unique_ptr<store::LoadMark>> begin_load(const Digest& digest) const;
    void note_use(const Digest& digest) const;
    /// Counts and logs that `doing` failed for the function.
    void note_failure(std::string_view doing, const Error& error) const { m_faults.note(doing, error); }
    /// Notes the addresses of a replayed call. Preloaded graphs are bound to these addresses.
    void note_addresses(const Frame& frame) const;
    /// Removes the entry. If that fails, counts and logs the failure.
    void remove(const Digest& digest) const;

    /// Returns the entries whose facts hold here; none under the policies off and refresh.
    [[nodiscard]] std::vector<PreloadCandidate> candidates(const std::vector<cachefmt::Fact>& facts) const;
    /// Whether candidates() may return a candidate. If not, the facts need not be gathered.
    [[nodiscard]] bool may_have_candidates() const noexcept;

    [[nodiscard]] LoadedVariant variant_of(const cachefmt::EntryHeader& header,
                                           std::unique_ptr<replay::Executable> executable) const;

private:
    [[nodiscard]] Situation situation(const cachefmt::Guards& now, bool has_pending) const;
    [[nodiscard]] Headers headers(const Digest& digest) const;
    /// Returns the header, or null if calls may not use the entry.
    [[nodiscard]] store::Header usable(store::Header header) const;
    /// Returns the variants that calls may use, and the variants that cannot be read.
    [[nodiscard]] std::vector<store::Variant> usable(std::vector<store::Variant> variants) const;
    [[nodiscard]] std::optional<PreloadedGraph> preloaded(const cachefmt::EntryKey& key, Phases& phases) const;
    [[nodiscard]] std::optional<PreloadCandidate> candidate(const store::Variant& variant,
                                                            const std::vector<cachefmt::Fact>& facts) const;
    void note_untrusted(const std::vector<store::Variant>& variants) const;
    void withdraw(const cachefmt::EntryKey& key) const;

    std::shared_ptr<const Declaration> m_declaration;
    Sources m_sources;
    Faults m_faults;
};

/// How long a first call waits for earlier work in the stream, so that memory that the function may write can be
/// copied. The wait has a limit, because that work may itself wait for this thread.
inline constexpr std::chrono::seconds k_wait_for_earlier_work{1};

/// Waits for the work in the stream. Returns false if the work is not done within the limit.
[[nodiscard]] Result<bool> is_idle(backends::Stream& stream, std::chrono::nanoseconds limit = k_wait_for_earlier_work);

} // namespace warmgraph
