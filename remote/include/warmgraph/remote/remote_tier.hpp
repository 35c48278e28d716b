// A remote store as a tier that costs time only, and little: it stops asking a store that fails, takes nothing that is not
// what it should be, counts, and changes nothing remote by reading.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/cachefmt/trust.hpp"
#include "warmgraph/remote/settings.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::remote {

/// The counters of one remote in this process. A look-up is a read of one object, or of all headers of a function.
struct Counts {
    std::string label;
    std::uint64_t hits = 0, misses = 0, puts = 0;
    std::uint64_t bytes_read = 0, bytes_written = 0;
    std::uint64_t bytes_left = 0; ///< bytes of objects that were not fetched, because their headers sufficed
    double read_ms = 0, write_ms = 0;
    std::uint64_t skipped = 0; ///< calls that went on without the store while it did not answer
    /// By the word of the error code: "io_failed", "corrupt", "untrusted"
    std::map<std::string, std::uint64_t> errors{};
    std::string why_not_asked{}; ///< the failure for which the store is not asked now; else empty
};

struct RemoteOptions {
    std::string label{};                       ///< for messages: Settings::label
    bool read_only = false;                    ///< put() gives permission_denied
    std::uint64_t max_bytes = 0;               ///< larger objects are neither put nor read; 0: no limit of its own
    cachefmt::Trust trust{};                   ///< signs artifacts, and says which signatures are accepted
    std::chrono::milliseconds pause{30'000};   ///< how long a store that failed is not asked
    std::set<std::string> refused{};           ///< names (store::to_text) that earlier processes refused as damaged
    std::string mark{};                        ///< by which the folder knows the remote (mark_name); empty: `label`
    std::shared_ptr<std::atomic<bool>> stop{}; ///< Settings::stop of the backend; null: it has none
    /// Called when an object is refused as damaged (true), and when a good one was put in its place (false), to remember it.
    std::function<void(const std::string& name, bool is_refused)> note_refused{};
};

/// Reads never give an outer Error: a store that fails, a damaged object and a refused one are misses, each counted by its
/// reason. After a miss, the store is not asked for this object for ten seconds. A read that takes longer than
/// ReadLimit::within is a miss, too, and no failure of the store. Artifacts lie in the store with a seal
/// (sealed_artifact.hpp), which is checked and taken off here; of an artifact only the whole can be read. Writes,
/// removals and lists give their errors. Thread-safe.
class RemoteTier final : public store::Tier {
public:
    RemoteTier(std::unique_ptr<store::Tier> backend, RemoteOptions options, Clock& clock = system_clock());
    ~RemoteTier() override;

    [[nodiscard]] Result<std::optional<store::StampedBytes>> get(const store::Name& name,
                                                                 store::ReadLimit extent) override;
    [[nodiscard]] Result<std::vector<store::StampedEntry>> get_entries(const store::FunctionKey& function,
                                                                       store::ReadLimit extent) override;
    /// An object that was refused is replaced, whatever the mode.
    [[nodiscard]] Result<void> put(const store::Name& name, ByteView bytes, store::PutMode mode) override;
    using Tier::put;
    [[nodiscard]] Result<void> remove(const store::Name& name) override;
    [[nodiscard]] Result<std::vector<store::Name>> list(const store::Scope& scope) override;
    [[nodiscard]] Result<void> note_use(const store::Name&) override { return {}; } ///< the store knows itself
    /// Counts the reason, and does not ask for the object again. Nothing is removed from the store.
    void refuse(const store::Name& name, const store::Stamp& stamp, const Error& reason) noexcept override;
    [[nodiscard]] std::string_view remote_label() const noexcept override { return m_options.label; }

    [[nodiscard]] std::string_view mark() const noexcept
    {
        return m_options.mark.empty() ? m_options.label : m_options.mark;
    }
    /// Ends the requests that are under way, and makes later ones fail, because the process ends.
    void stop() noexcept
    {
        if (m_options.stop) *m_options.stop = true;
    }
    [[nodiscard]] const RemoteOptions& options() const noexcept { return m_options; }
    [[nodiscard]] Counts counts() const;

private:
    template <class Call>
    [[nodiscard]] auto asked(double Counts::* time, Call call, std::chrono::milliseconds within = {})
        -> decltype(call(std::declval<store::Tier&>()));
    [[nodiscard]] bool is_refused(const std::string& name) const;
    void count_error(const Error& error);
    [[nodiscard]] bool is_absent(const std::string& name);
    void note_absent(const std::string& name);
    [[nodiscard]] std::optional<std::vector<store::StampedEntry>> known_entries(const store::FunctionKey& function,
                                                                                store::ReadLimit extent);
    void keep_entries(const store::FunctionKey& function, store::ReadLimit extent,
                      const std::vector<store::StampedEntry>& entries);
    [[nodiscard]] std::optional<store::StampedBytes> known_head(const store::Name& name, store::ReadLimit extent);
    void keep_head(const store::Name& name, store::ReadLimit extent, const store::StampedBytes& found);
    [[nodiscard]] std::optional<store::StampedBytes> taken(const store::Name& name, store::ReadLimit extent,
                                                           std::optional<store::StampedBytes> found);

    std::unique_ptr<store::Tier> m_backend;
    RemoteOptions m_options;
    Clock& m_clock;
    mutable std::mutex m_mutex;
    Counts m_counts; ///< guarded by m_mutex
    /// The beginnings of entries whose headers were asked for: the entry itself is asked for next, and then needs only its
    /// rest. Each is given once, and not after a few seconds. Guarded by m_mutex.
    struct Head {
        store::StampedBytes object;
        std::uint64_t limit;
        std::chrono::steady_clock::time_point until;
    };
    std::map<std::string, Head> m_heads;
    /// Answers that hold for a few seconds, because a function whose recording goes on asks at each of its calls: names
    /// that are not there, and the beginnings of functions' entries. Guarded by m_mutex.
    struct KnownEntries {
        std::vector<store::StampedEntry> heads;
        std::uint64_t limit; ///< ReadLimit::bytes of the heads
        std::chrono::steady_clock::time_point until;
    };
    std::map<std::string, std::chrono::steady_clock::time_point> m_absent;
    std::map<store::FunctionKey, KnownEntries> m_entries;
    std::set<std::string> m_refused;          ///< guarded by m_mutex
    std::unique_ptr<class Breaker> m_breaker; ///< ends before the backend that its probe asks
};

} // namespace warmgraph::remote
