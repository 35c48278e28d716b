// The cache folder. Layout:
//   <root>/CACHEDIR.TAG                                     the mark: made with the folder, never in somebody else's
//   <root>/<model_info>/<rank>/<func>/<guards digest>.wg    entries
//   <root>/<model_info>/<rank>/<func>/usage.json            hits, last use (advisory)
//   <root>/<model_info>/<rank>/<func>/misses.jsonl          its last misses (advisory)
//   <root>/images/<2 hex>/<sha256>                          device code, shared by all
//   <root>/autotune/<2 hex>/<64 hex>.best_config            tuned configurations (autotune/ knows what they mean),
//                                   .module_configs         and all of one module
//   <root>/compiled/<2 hex>/<64 hex>.compiled               what a compiler made of a program (precompile/ knows its meaning)
//   <root>/compiled/misses.jsonl                            the last misses of programs (advisory)
//   <root>/profile/<2 hex>/<64 hex>.profile                 sizes that functions were called with
//   <root>/<autotune, compiled, profile>/usage.json         hits and misses of the kind (advisory)
//   <root>/torch/<2 hex>/<64 hex>.mega_cache               what PyTorch compiled, signed (torch_artifacts.hpp)
//   <root>/.leases, .prune.lock                             which entries are used; who makes room
//   <root>/quarantine/                                      what failed verification, with a reason beside it
// Beside them while in use: .tmp-<host>-<boot>-<pid>-<uuid> (a file being written), .lock-<16 hex> (a recording),
// .usage.lock, .loading-... (code that a driver is given, or first runs, see load_mark.hpp; it stays where the process died then).
//
// Commit protocol: see commit.md at store/src/tiers/local. Readers take no lock; a reader sees a whole file or none.
// Thread-safe. A failure of the disk is an Error for the caller to count, never an exception.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/store/function_usage.hpp"
#include "warmgraph/store/layered.hpp"
#include "warmgraph/store/load_mark.hpp"
#include "warmgraph/store/miss.hpp"
#include "warmgraph/store/store.hpp"
#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::store {

enum class Sharing : std::uint8_t { owner_only, group }; ///< modes 0700/0600 or 02770/0660

/// A read-only store needs no right to write and changes nothing: no touch, no quarantine, no usage. Calls that would
/// write give permission_denied. Its folder must exist, and may also belong to root or to a trusted owner.
enum class StoreMode : std::uint8_t { read_write, read_only };

struct StoreOptions {
    Sharing sharing = Sharing::owner_only;
    StoreMode access = StoreMode::read_write;
    /// With read_write: a marked folder that cannot be written (a read-only file system, no right, no room), or that
    /// belongs to root or to a trusted owner, is opened read_only. LocalStore::why_read_only says so.
    bool falls_back = false;
    /// User ids whose files are read besides this user's and root's: who built the container image with the cache in it.
    std::vector<std::uint32_t> trusted_owners{};
    std::uint32_t max_variants = 64; ///< of one function; the least recently used go first. Tombstones count
    Budget budget{};                 ///< of the folder; kept by those who publish, within their time
    cachefmt::Limits limits{};
    /// The largest image that is read or written (below limits.image_bytes): its digest is known only when it is read.
    std::uint64_t image_bytes = 256ULL << 20;
    /// Entries that it does not accept are `untrusted`: neither read further than their header nor moved. The files of
    /// those that an accepted key signed may belong to anybody, as long as nobody else may write them.
    cachefmt::Trust trust{};
    Packings packings{}; ///< what is compressed; all is read, however it was stored
};

/// The folder as one object: the Store over its tier, usage and upkeep.
class LocalStore : public Store {
public:
    /// Opens the folder, making and marking it when it is missing or empty; `root` is made absolute now. Errors:
    /// permission_denied (not writable; somebody else could have written it, see below; or read_write and neither marked
    /// nor empty: then nothing is written), io_failed (is a file), not_found (read_only and missing), each naming the
    /// path and the cure. read_only opens a folder without the mark too: what is read is verified, and nothing is
    /// changed. `files` and `clock` must outlive the store and its locks.
    ///
    /// The folder is opened once: nothing below it is reached by a path or through a link. Folders and files are used
    /// only where they belong to this user, to root or to a trusted owner and nobody else may write them; with
    /// Sharing::group also where they carry the folder's group, the process has it, and others may not write.
    [[nodiscard]] static Result<std::unique_ptr<LocalStore>> open(const std::filesystem::path& root,
                                                                  const StoreOptions& options = {},
                                                                  FileSystem& files = posix_file_system(),
                                                                  Clock& clock = system_clock());

    [[nodiscard]] const std::filesystem::path& root() const noexcept;
    /// Why it was opened read_only and not as asked; empty where it was not.
    [[nodiscard]] const std::string& why_read_only() const noexcept;

    /// A store on no folder at all: it has what its layers have, and writes nothing. `why`: for why_read_only.
    [[nodiscard]] static std::unique_ptr<LocalStore> without_folder(std::string why, const StoreOptions& options = {});
    // --- entries and images: Store's, of the folder and its layers. What cannot be used goes to quarantine, where the store
    // may write; a variant that is published evicts those over the limit.

    /// All functions on disk, sorted: those whose folder holds anything.
    [[nodiscard]] Result<std::vector<FunctionKey>> functions() const;
    /// Right before a driver is given the entry's code; what is given lasts until that is over, and not longer than this
    /// store. driver_failed: the last two processes in a row that did so on this driver and device died over it. Null where
    /// nothing is noted, as in a folder that is not written; then nothing is judged either. Costs one look into the
    /// function's folder, one file made and one removed.
    [[nodiscard]] Result<std::unique_ptr<LoadMark>> begin_load(const EntryKey& key, const LoadTarget& target);
    /// The load ends when `is_done` says so: a success, or a failure. That is asked at once, by settle_loads(), now and then
    /// by a thread of the store's, and when the store goes. A process that exits before ends it, too. `mark` may be null.
    void end_load_behind(std::unique_ptr<LoadMark> mark, IsDone is_done) noexcept;
    /// Ends the loads whose work is done. Costs nothing where none waits.
    void settle_loads() noexcept;
    /// Digests and sizes of all images in the folder.
    [[nodiscard]] Result<std::vector<std::pair<Digest, std::uint64_t>>> images() const;

    // --- usage (best effort: a failure is swallowed here and never reaches a caller's result). Touches the disk: call
    // it once for a load, a miss or a recording, not once for a call. What another process's write holds up is kept and
    // written by the next add_usage or the destructor.
    void add_usage(const FunctionKey& function, const FunctionUsage& more) noexcept;
    /// The same on a thread of the store's, so that a first call does not wait for the disk; tries again by itself
    /// while another process writes.
    void add_usage_soon(const FunctionKey& function, const FunctionUsage& more) noexcept;
    /// Begins that thread (a tenth of a millisecond), which otherwise the first add_usage_soon does.
    void expect_usage() noexcept;
    [[nodiscard]] FunctionUsage usage(const FunctionKey& function) const;
    /// The same of a kind that has files, of all models together.
    void add_usage_soon(ArtifactKind kind, const FunctionUsage& more) noexcept;
    [[nodiscard]] FunctionUsage usage(ArtifactKind kind) const;

    /// Keeps a miss beside the function's entries, with the guards of its call (guards::to_json; empty: not known). Also in a store that was
    /// opened read_only, where the folder lets it; a failure is swallowed, and costs a few milliseconds.
    void note_miss(const FunctionKey& function, const Miss& miss, std::string_view call) noexcept;
    /// The last of them, of all processes. `corrupt`: the file is not as note_miss writes it, which the next one mends.
    [[nodiscard]] Result<Misses> misses(const FunctionKey& function) const;

    /// Keeps a program's miss, the last one of each program (Miss::id). As note_miss.
    void note_program_miss(const Miss& miss) noexcept;
    [[nodiscard]] Result<Misses> program_misses() const;
    /// Files and bytes in the folder, of each kind with its parts.
    [[nodiscard]] Result<std::map<ArtifactKind, Removal::Amount>> held() const;
    /// Keeps the folder's budget behind something that was put into the tier, within a writer's time. Best effort.
    void make_room() noexcept;

    // --- whole folder. Only names that the library makes are changed, and only where the mark still is; in a folder that
    // lost it the changing calls give permission_denied.
    /// Reads everything: every damaged, foreign or left-over file. Artifacts are read by `verifier`; without these their names
    /// are looked at, and nothing else. Changes nothing. Codes: corrupt and stale (does not
    /// verify; stored for another key), not_found (an entry whose image is missing; the mark is), invalid_argument (a foreign
    /// file), io_failed (a dead writer's temporary), or why a file cannot be read.
    [[nodiscard]] Result<std::vector<Damage>> check(const ArtifactVerifier& verifier = {}) const;
    /// Moves every damaged entry, image and artifact to quarantine, removes temporaries of dead writers; foreign files stay.
    /// Returns what was found.
    [[nodiscard]] Result<std::vector<Damage>> repair(const ArtifactVerifier& verifier = {});
    /// What clear() would remove now. Changes nothing, and gives the same errors, but may be asked in a read-only store.
    [[nodiscard]] Result<Removal> plan_clear(const ClearRequest& request) const;
    /// Removes it and returns what went. Chosen names that fit no function remove nothing. Folders go that are empty then.
    [[nodiscard]] Result<Removal> clear(const ClearRequest& request = {});

    /// Makes room: images that no entry names; then, while more is there than may stay, quarantine and the entries that
    /// were not used for longest, with the images that nothing names then. Nothing that a living process published, loaded
    /// or used goes.
    [[nodiscard]] Result<Pruned> prune(const PruneRequest& request = {});
    /// What prune() would do now. Changes nothing, and may be asked in a read-only store.
    [[nodiscard]] Result<Pruned> plan_prune(const PruneRequest& request = {}) const;
    /// With its defaults filled in.
    [[nodiscard]] Budget budget() const;

    /// One process records a function at a time: nullptr when another holds it; released when the holder dies.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_record_lock(const EntryKey& key);
    /// The same for whoever reads an artifact, changes it and puts it again.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_artifact_lock(const ArtifactName& name);

    ~LocalStore();

private:
    struct Impl;
    explicit LocalStore(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph::store
