// What is on disk for a function: whether it fits, and restored where it does.
#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/call/counters.hpp"
#include "warmgraph/call/faults.hpp"
#include "warmgraph/call/job.hpp"
#include "warmgraph/call/plan.hpp"
#include "warmgraph/pairs/pair_role.hpp"
#include "warmgraph/preload/preload_entry.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph {

/// An entry on disk that may be restored before its first call.
struct PreloadCandidate {
    Digest guards_digest;
    std::vector<TensorDecl> inputs;
    std::chrono::system_clock::time_point last_used;
    std::optional<Error> damage; ///< the header cannot be read
};

struct RestoredEntry {
    cachefmt::EntryHeader header;
    std::unique_ptr<replay::Executable> executable;
    std::unique_ptr<store::LoadMark> mark;            ///< the load goes on to the first launch; null: none is noted
    std::shared_ptr<const Placeholder> placeholder{}; ///< where its regions are until the first launch; or null
    bool is_preloaded = false;                        ///< for this function
};

/// Why a stored entry is not used.
struct Unusable {
    std::string reason;
    ErrorCode code = ErrorCode::not_found;
    /// The function runs as it is, and nothing is recorded: the entry's graph meets a semaphore that this Spec does not
    /// declare (runs for recording would meet it too), or a registered module's variables hold something else than the
    /// entry has (a second recording would make it `recompiled` for everybody).
    bool must_not_record = false;
};

/// Without state of its own: thread-safe, takes no lock, changes nothing but the folder.
class Lookup {
public:
    struct Sources {
        std::shared_ptr<store::LocalStore> store; ///< null where caching is off
        std::string why_off;                      ///< then
        bool uses_graphs = true;                  ///< false: they are switched off
        guards::Relaxation relaxation;
        replay::ImageSource images;
        std::optional<cachefmt::Part> part; ///< of a pair; none for a function by itself
        // They outlive the look-up.
        Counters& counters;
        PreloadState& preload;
        replay::ModuleCache& modules;
    };
    Lookup(std::shared_ptr<const Declaration> declaration, Sources sources);

    /// What is to be done for a call with these guards. `has_pending`: one of the function's recordings is not done.
    [[nodiscard]] Plan decide(const Journey& journey, bool has_pending) const;
    /// The same where nothing can be replayed, for this reason.
    [[nodiscard]] Plan on_miss(const Journey& journey, bool has_pending, std::string reason) const;

    /// Preloading rests while the object lives.
    [[nodiscard]] PreloadedGraphs::FirstCall begin_first_call() const
    {
        return PreloadedGraphs::FirstCall{m_sources.preload.graphs};
    }
    /// Restores an entry whose guards hold, for this call; nothing is launched. A failure was counted and logged.
    [[nodiscard]] std::expected<LoadedVariant, Unusable> load(const cachefmt::EntryKey& key, const Frame& frame,
                                                              backends::Stream& stream, Phases& phases) const;
    /// nullopt: there is no such entry.
    [[nodiscard]] Result<std::optional<RestoredEntry>> restore(const cachefmt::EntryKey& key, store::Reading reading,
                                                               const Frame& frame, Phases& phases) const;
    /// Whether this function may use the entry. One that is not the function's is set aside.
    [[nodiscard]] Result<void> check_stored(const cachefmt::EntryHeader& header, const cachefmt::Graph& graph) const;
    /// What this process has under a constant's name must be what the entry has.
    [[nodiscard]] Result<void> check_constants(const replay::Executable& executable, backends::Stream& stream) const;
    /// The program asked for the address of some variable since. False: the variant is not replayed any more, as it
    /// has that variable, or code that cannot be looked at any more.
    [[nodiscard]] bool is_still_right(const LoadedVariant& variant) const;
    /// Noted as under way until the mark is told otherwise. An error: processes died of it.
    [[nodiscard]] Result<std::unique_ptr<store::LoadMark>> begin_load(const Digest& digest) const;
    void note_use(const Digest& digest) const;
    /// Counted and logged: `doing` failed for the function.
    void note_failure(std::string_view doing, const Error& error) const { m_faults.note(doing, error); }
    /// Where a call that was replayed has its memory: graphs that are preloaded are bound to that.
    void note_addresses(const Frame& frame) const;
    /// A failure is counted and logged.
    void remove(const Digest& digest) const;

    /// The entries whose facts hold here; none under the policies off and refresh.
    [[nodiscard]] std::vector<PreloadCandidate> candidates(const std::vector<cachefmt::Fact>& facts) const;
    /// Whether candidates() may have any: else no facts need be gathered.
    [[nodiscard]] bool looks_ahead() const noexcept;

    [[nodiscard]] LoadedVariant variant_of(const cachefmt::EntryHeader& header,
                                           std::unique_ptr<replay::Executable> executable) const;

private:
    [[nodiscard]] Situation situation(const cachefmt::Guards& now, bool has_pending) const;
    [[nodiscard]] Headers headers(const Digest& digest) const;
    /// Null where a call may not use it.
    [[nodiscard]] store::Header usable(store::Header header) const;
    /// Those that a call may use, and what cannot be read.
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

/// How long a first call waits for work that was enqueued before it. Copies of what the function may write need that;
/// such work may in turn wait for this very thread, so the wait ends.
inline constexpr std::chrono::seconds k_wait_for_earlier_work{1};

/// false: it is not done in time.
[[nodiscard]] Result<bool> is_idle(backends::Stream& stream, std::chrono::nanoseconds limit = k_wait_for_earlier_work);

} // namespace warmgraph
