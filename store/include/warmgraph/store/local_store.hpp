// The cache folder. Layout:
//   <root>/CACHEDIR.TAG                                     the mark: made with the folder, never in somebody else's
//   <root>/<model_info>/<rank>/<func>/<guards digest>.wg    entries
//   <root>/<model_info>/<rank>/<func>/usage.json            hits, last use (advisory)
//   <root>/<model_info>/<rank>/<func>/misses.jsonl          its last misses (advisory)
//   <root>/images/<2 hex>/<sha256>                          device code, shared by all
//   <root>/quarantine/                                      what failed verification, with a reason beside it
// Beside them while in use: .tmp-<host>-<boot>-<pid>-<uuid> (a file being written), .lock-<16 hex> (a recording),
// .usage.lock.
//
// Commit protocol: see commit.md beside the source. Readers take no lock; a reader sees a whole file or none.
// Thread-safe. A failure of the disk is an Error for the caller to count, never an exception.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/store/events.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::store {

using cachefmt::Entry;
using cachefmt::EntryHeader;
using cachefmt::EntryKey;
using cachefmt::FunctionKey;

enum class Sharing : std::uint8_t { owner_only, group }; ///< modes 0700/0600 or 02770/0660

/// A read-only store needs no right to write and changes nothing: no touch, no quarantine, no usage. Calls that would
/// write give permission_denied. Its folder must exist, and may also belong to root.
enum class Access : std::uint8_t { read_write, read_only };

/// Why an entry is read: it is used now, or ahead of its use, which note_use() then tells.
enum class Reading : std::uint8_t { use, ahead };

struct StoreOptions {
    Sharing sharing = Sharing::owner_only;
    Access access = Access::read_write;
    /// With read_write: a marked folder that cannot be written (a read-only file system, no right, no room), or that belongs to root, is
    /// opened read_only. LocalStore::why_read_only says so.
    bool falls_back = false;
    std::uint32_t max_variants = 64; ///< of one function; the least recently used go first. Tombstones count
    cachefmt::Limits limits{};
    /// The largest image that is read or written (below limits.image_bytes): its digest is known only when it is read.
    std::uint64_t image_bytes = 256ULL << 20;
    /// Entries that it does not accept are `untrusted`: neither read further than their header nor moved.
    cachefmt::Trust trust{};
};

/// A variant as found on disk: its header, or why it cannot be used.
struct Variant {
    Digest guards;                                   ///< from the file's name
    std::uint64_t size = 0;                          ///< bytes on disk
    std::chrono::system_clock::time_point last_used; ///< the file's modification time
    Result<EntryHeader> header;                      ///< verified; the payload was not read
};

struct Damage {
    std::filesystem::path path; ///< relative to the root
    Error error;
};

/// Where the time of a first call went: phases in order, with milliseconds of the host.
using PhaseTimes = std::vector<std::pair<std::string, double>>;

struct FunctionUsage {
    std::uint64_t hits = 0, misses = 0, recordings = 0, refusals = 0;
    double saved_ms = 0;
    std::string last_used{}; ///< ISO 8601
    Events events{};
    PhaseTimes cold{}; ///< of the last call that was recorded, without publishing; empty: not known
    PhaseTimes warm{}; ///< of the last load that became a hit, without its first launch; empty: not known
};

enum class ClearKind : std::uint8_t {
    entries,    ///< with their functions' usage, and the images that nothing names then, however young
    images,     ///< that no entry names and that are older than an hour (a writer publishes images first)
    quarantine, ///< what failed verification
    all,
};

/// What clear() is asked for. The names choose functions, for entries alone: each one that is given must fit.
struct ClearRequest {
    ClearKind kind = ClearKind::entries;
    std::optional<std::string> model{}; ///< its name, or the whole model_info for one configuration of it
    std::optional<std::string> rank{};
    std::optional<std::string> function{};

    [[nodiscard]] bool chooses_functions() const noexcept { return model || rank || function; }
};

/// What clear() takes away.
struct Removal {
    struct Amount {
        std::uint64_t files = 0, bytes = 0;
        Amount& operator+=(const Amount& more) noexcept
        {
            files += more.files;
            bytes += more.bytes;
            return *this;
        }
    };
    std::uint64_t functions = 0; ///< that fit the request, also those without entries
    Amount entries{}, images{}, quarantined{};

    [[nodiscard]] std::uint64_t files() const noexcept { return entries.files + images.files + quarantined.files; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return entries.bytes + images.bytes + quarantined.bytes; }
};

class LocalStore {
public:
    /// Opens the folder, making and marking it when it is missing or empty; `root` is made absolute now. Errors:
    /// permission_denied (not writable, another owner's without Sharing::group, or read_write and neither marked nor empty:
    /// then nothing is written), io_failed (is a file), not_found (read_only and missing), each naming the path and the
    /// cure. read_only opens a folder without the mark too: what is read is verified, and nothing is changed. `files` and
    /// `clock` must outlive the store and its locks.
    [[nodiscard]] static Result<std::unique_ptr<LocalStore>> open(const std::filesystem::path& root,
                                                                  const StoreOptions& options = {},
                                                                  FileSystem& files = posix_file_system(),
                                                                  Clock& clock = system_clock());

    [[nodiscard]] const std::filesystem::path& root() const noexcept;
    /// Why it was opened read_only and not as asked; empty where it was not.
    [[nodiscard]] const std::string& why_read_only() const noexcept;

    // --- entries
    /// All functions on disk, sorted: those whose folder holds anything.
    [[nodiscard]] Result<std::vector<FunctionKey>> functions() const;
    /// All variants of a function, headers verified, sorted by digest. Damaged ones carry their error.
    [[nodiscard]] Result<std::vector<Variant>> variants(const FunctionKey& function) const;
    /// One header by exact key; nullopt when there is no such file. The key has the format in its guards: a file of
    /// another format, newer or not, is damage here.
    [[nodiscard]] Result<std::optional<EntryHeader>> header(const EntryKey& key) const;
    /// One entry, fully verified and (Reading::use) counted as used now. nullopt: no such file. corrupt and stale entries are moved
    /// to quarantine, whatever format they claim, and the error is returned; untrusted ones stay.
    [[nodiscard]] Result<std::optional<Entry>> entry(const EntryKey& key, Reading reading = Reading::use);
    /// Counts an entry as used now. Best effort.
    void note_use(const EntryKey& key) noexcept;
    /// Publishes: encodes, writes a temporary, syncs, renames; then evicts variants over the limit. Replaces an entry
    /// of the same key (its identity is the caller's business). Signed where StoreOptions::trust has a key for it.
    [[nodiscard]] Result<void> publish(const Entry& entry);
    [[nodiscard]] Result<void> remove(const EntryKey& key);

    // --- images
    /// Verified against the digest; nullopt when missing; damaged ones are quarantined and reported as missing too.
    /// `size` is what the entry says: no more is read.
    [[nodiscard]] Result<std::optional<Bytes>> image(const Digest& digest, std::uint64_t size = ~0ULL);
    /// Writes unless it is there already (then it is touched). Returns true when written.
    [[nodiscard]] Result<bool> publish_image(ByteView image);
    /// Digests and sizes of all images.
    [[nodiscard]] Result<std::vector<std::pair<Digest, std::uint64_t>>> images() const;

    // --- usage (best effort: a failure is swallowed here and never reaches a caller's result). Touches the disk: call
    // it once for a load, a miss or a recording, not once for a call. What another process's write holds up is kept and
    // written by the next add_usage or the destructor.
    void add_usage(const FunctionKey& function, const FunctionUsage& more) noexcept;
    /// The same on a thread of the store's, so that a first call does not wait for the disk; tries again by itself
    /// while another process writes.
    void add_usage_soon(const FunctionKey& function, const FunctionUsage& more) noexcept;
    [[nodiscard]] FunctionUsage usage(const FunctionKey& function) const;

    /// Keeps a miss beside the function's entries, with the guards of its call (guards::to_json). Also in a store that was
    /// opened read_only, where the folder lets it; a failure is swallowed, and costs a few milliseconds.
    void note_miss(const FunctionKey& function, const Miss& miss, std::string_view call) noexcept;
    /// The last of them, of all processes. `corrupt`: the file is not as note_miss writes it, which the next one mends.
    [[nodiscard]] Result<Misses> misses(const FunctionKey& function) const;

    // --- whole folder. Only names that the library makes are changed, and only where the mark still is; in a folder that
    // lost it the changing calls give permission_denied.
    /// Reads everything: every damaged, foreign or left-over file. Changes nothing. Codes: corrupt and stale (does not
    /// verify; stored for another key), not_found (an entry whose image is missing; the mark is), invalid_argument (a foreign
    /// file), io_failed (a dead writer's temporary), or why a file cannot be read.
    [[nodiscard]] Result<std::vector<Damage>> check() const;
    /// Moves every damaged entry and image to quarantine, removes temporaries of dead writers; foreign files stay.
    /// Returns what was found.
    [[nodiscard]] Result<std::vector<Damage>> repair();
    /// What clear() would remove now. Changes nothing, and gives the same errors, but may be asked in a read-only store.
    [[nodiscard]] Result<Removal> plan_clear(const ClearRequest& request) const;
    /// Removes it and returns what went. Chosen names that fit no function remove nothing. Folders go that are empty then.
    [[nodiscard]] Result<Removal> clear(const ClearRequest& request = {});

    /// One process records a function at a time: nullptr when another holds it; released when the holder dies.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_record_lock(const EntryKey& key);

    ~LocalStore();

private:
    struct Impl;
    explicit LocalStore(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph::store
