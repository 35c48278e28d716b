// The cache folder. Layout:
//   <root>/CACHEDIR.TAG                                     the mark: made with the folder, never in a foreign folder
//   <root>/<model_info>/<rank>/<func>/<guards digest>.wg    entries
//   <root>/<model_info>/<rank>/<func>/usage.json            hits, last use (advisory)
//   <root>/<model_info>/<rank>/<func>/misses.jsonl          its last misses (advisory)
//   <root>/images/<2 hex>/<sha256>                          device code, shared by all
//   <root>/autotune/<2 hex>/<64 hex>.best_config            tuned configurations (autotune/ defines them),
//                                   .module_configs         and all of one module
//   <root>/compiled/<2 hex>/<64 hex>.compiled               compiled programs (precompile/ defines them)
//   <root>/compiled/misses.jsonl                            the last misses of programs (advisory)
//   <root>/profile/<2 hex>/<64 hex>.profile                 sizes that functions were called with
//   <root>/<autotune, compiled, profile>/usage.json         hits and misses of the kind (advisory)
//   <root>/torch/<2 hex>/<64 hex>.mega_cache                PyTorch's compiled code, signed (torch_artifacts.hpp)
//   <root>/.leases, .prune.lock                             which entries are in use; which process makes room
//   <root>/remotes/<16 hex>.<unsent, refused>.<64 hex>      marks on objects of remotes (src/tiers/local/remote_marks.hpp)
//   <root>/remotes/usage.json                               what was read from and sent to them (advisory)
//   <root>/quarantine/                                      files that failed verification, each with a reason
// While in use: .tmp-<host>-<boot>-<pid>-<uuid> (a file being written), .lock-<16 hex> (a recording), .usage.lock,
// .loading-... (a driver loads the code or runs it for the first time, see load_mark.hpp; it stays when the process
// dies).
//
// Commit protocol: see commit.md at store/src/tiers/local. Readers take no lock; a reader sees a whole file or none.
// Thread-safe. A disk failure is an Error for the caller to count, never an exception.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

enum class Sharing : std::uint8_t { owner_only, group }; ///< folder and file modes: 0700 and 0600, or 02770 and 0660

/// A read-only store needs no right to write and changes nothing: no touch, no quarantine, no usage. Calls that write
/// give permission_denied. Its folder must exist, and may also belong to root or to a trusted owner.
enum class StoreMode : std::uint8_t { read_write, read_only };

struct StoreOptions {
    Sharing sharing = Sharing::owner_only;
    StoreMode access = StoreMode::read_write;
    /// With read_write: the store opens a marked folder as read_only when it cannot be written (a read-only file
    /// system, no right, no room), or belongs to root or to a trusted owner. LocalStore::why_read_only has the reason.
    bool falls_back = false;
    /// User ids whose files are also read, e.g. the builder of the container image. Files of this user and of root are
    /// always read.
    std::vector<std::uint32_t> trusted_owners{};
    std::uint32_t max_variants = 64; ///< variants of a function, with tombstones; the least recently used go first
    Budget budget{}; ///< the folder's budget; a process that publishes keeps the folder within it, as part of its call
    cachefmt::Limits limits{};
    /// The largest image that is read or written, in bytes (at most limits.image_bytes). The cap is needed because an
    /// image is verified only after it was read.
    std::uint64_t image_bytes = 256ULL << 20;
    /// Entries without an accepted signature are `untrusted`: they are not read beyond their header, and not moved. A
    /// file with an accepted signature may belong to any user, if no other user may write it.
    cachefmt::Trust trust{};
    Packings packings{}; ///< compression of new objects; both forms are always readable
};

/// A mark in the folder on an object of a remote.
enum class RemoteMark : std::uint8_t {
    unsent,  ///< the folder has the object, and the remote may not have it: a later process sends it
    refused, ///< the remote gave the object damaged: this folder does not fetch it again
};

/// The folder as one object: the Store over its tier, usage and upkeep.
class LocalStore : public Store {
public:
    /// Opens the folder. Makes and marks it when it is missing or empty; `root` is made absolute now. Errors, each with
    /// the path and the cure: permission_denied (not writable; another user could have written it, see below; or
    /// read_write on a folder that is neither marked nor empty, where nothing is written), io_failed (`root` is a
    /// file), not_found (read_only, and it is missing). read_only also opens a folder without the mark, since every
    /// read is verified and nothing is changed. `files` and `clock` must outlive the store and its locks.
    ///
    /// The folder is opened once; all files are reached from it, and never through a link. The store uses a folder or
    /// file only when it belongs to this user, to root or to a trusted owner and no other user may write it. With
    /// Sharing::group it also uses files of the folder's group, if the process is in this group and others may not
    /// write.
    [[nodiscard]] static Result<std::unique_ptr<LocalStore>> open(const std::filesystem::path& root,
                                                                  const StoreOptions& options = {},
                                                                  FileSystem& files = posix_file_system(),
                                                                  Clock& clock = system_clock());

    [[nodiscard]] const std::filesystem::path& root() const noexcept;
    /// The reason why the store was opened read_only instead of read_write; else empty.
    [[nodiscard]] const std::string& why_read_only() const noexcept;

    /// A store without a folder: it reads its layers, and writes nothing. `why`: for why_read_only.
    [[nodiscard]] static std::unique_ptr<LocalStore> without_folder(std::string why, const StoreOptions& options = {});
    // --- Entries and images: Store's calls on the folder and its layers. An object that cannot be used goes to
    // quarantine, if the store may write. Publishing a variant evicts the variants over the limit.

    /// Waits until everything that remotes gave is in the folder. The destructor waits, too.
    void wait_for_copies();
    /// Calls `listener` with each object that this process puts itself (PutMode::replace). Call this before other threads
    /// use the store; the listener must not throw.
    void listen(std::function<void(const Name&)> listener);
    /// Marks on objects of a remote, which outlive this process. `remote`: its label and namespace. `name`: to_text() of an
    /// object. permission_denied: the folder is only read.
    [[nodiscard]] Result<void> set_mark(std::string_view remote, RemoteMark mark, const std::string& name);
    [[nodiscard]] Result<void> clear_mark(std::string_view remote, RemoteMark mark, const std::string& name);
    /// The names with this mark, sorted.
    [[nodiscard]] Result<std::vector<std::string>> marks(std::string_view remote, RemoteMark mark) const;

    /// Returns all functions on disk whose folder is not empty, sorted. Those of remotes are not among them.
    [[nodiscard]] Result<std::vector<FunctionKey>> functions() const;
    /// Call this right before a driver loads the entry's code, and keep the mark until the load is over; the store must
    /// outlive the mark. driver_failed: the last two processes that loaded the entry on this driver and device died.
    /// Null: no mark was made, e.g. in a folder that is not written; then deaths are not checked either. Costs one
    /// listing of the function's folder, one file made and one removed.
    [[nodiscard]] Result<std::unique_ptr<LoadMark>> begin_load(const EntryKey& key, const LoadTarget& target);
    /// The load ends when `is_done` returns true (a success) or an error (a failure). `is_done` is called now, by
    /// settle_loads(), at intervals by the store's thread, and by the store's destructor. A normal exit of the process
    /// ends the load, too. `mark` may be null.
    void end_load_behind(std::unique_ptr<LoadMark> mark, IsDone is_done) noexcept;
    /// Ends the loads whose work is done. Free when no load waits.
    void settle_loads() noexcept;
    /// Digests and sizes of all images in the folder.
    [[nodiscard]] Result<std::vector<std::pair<Digest, std::uint64_t>>> images() const;

    // --- Usage. Best effort: a failure is swallowed and never reaches a caller's result. These calls touch the disk:
    // make one for each load, miss or recording, not for each call. When another process is writing, the counts are
    // kept and written by the next add_usage or the destructor.
    void add_usage(const FunctionKey& function, const FunctionUsage& more) noexcept;
    /// Like add_usage(), but on the store's thread, so that a first call does not wait for the disk. Retries while the
    /// file is locked.
    void add_usage_soon(const FunctionKey& function, const FunctionUsage& more) noexcept;
    /// Starts that thread now (0.1 ms). Otherwise the first add_usage_soon starts it.
    void expect_usage() noexcept;
    [[nodiscard]] FunctionUsage usage(const FunctionKey& function) const;
    /// Like add_usage_soon() above, for a kind that has files, for all models together.
    void add_usage_soon(ArtifactKind kind, const FunctionUsage& more) noexcept;
    [[nodiscard]] FunctionUsage usage(ArtifactKind kind) const;
    /// Like add_usage(), for the remotes: events, whose reasons are words of remotes (remote/lasting_counts.hpp).
    void add_remote_usage(const FunctionUsage& more) noexcept;
    [[nodiscard]] FunctionUsage remote_usage() const;

    /// Keeps a miss beside the function's entries, with the guards of its call (guards::to_json; empty: not known).
    /// Also works in a read-only store, if the folder permits it. Swallows failures. Costs a few milliseconds.
    void note_miss(const FunctionKey& function, const Miss& miss, std::string_view call) noexcept;
    /// The last misses of all processes. `corrupt`: not in note_miss's format; the next note_miss replaces the file.
    [[nodiscard]] Result<Misses> misses(const FunctionKey& function) const;

    /// Keeps a program's miss; for each program only the last one (Miss::id). Otherwise as note_miss.
    void note_program_miss(const Miss& miss) noexcept;
    [[nodiscard]] Result<Misses> program_misses() const;
    /// Files and bytes in the folder, by kind, each with its parts.
    [[nodiscard]] Result<std::map<ArtifactKind, Removal::Amount>> held() const;
    /// Keeps the folder's budget after something was put into the tier. Best effort, within a writer's time limit.
    void make_room() noexcept;

    // --- The whole folder. Only files with the library's own names are changed, and only while the mark is there. In a
    // folder that lost its mark these calls give permission_denied.
    /// Reads everything and returns every damaged, foreign or left-over file. `verifier` reads the artifacts; without
    /// it only their names are checked. Changes nothing. Codes: corrupt and stale (failed verification; stored under
    /// another key), not_found (an entry's image or the mark is missing), invalid_argument (a foreign file), io_failed
    /// (a dead writer's temporary), or the error of reading the file.
    [[nodiscard]] Result<std::vector<Damage>> check(const ArtifactVerifier& verifier = {}) const;
    /// Moves every damaged entry, image and artifact to quarantine, and removes temporaries of dead writers. Foreign
    /// files stay. Returns the damage that it found.
    [[nodiscard]] Result<std::vector<Damage>> repair(const ArtifactVerifier& verifier = {});
    /// Returns the files that clear() would remove now, or the error of clear(). Changes nothing, and also works in a
    /// read-only store.
    [[nodiscard]] Result<Removal> plan_clear(const ClearRequest& request) const;
    /// Removes the files and returns their counts. Names that fit no function remove nothing. Removes empty folders,
    /// too.
    [[nodiscard]] Result<Removal> clear(const ClearRequest& request = {});

    /// Makes room. First removes images that no entry names. Then, while the folder is over its budget, removes
    /// quarantine and the least recently used entries, with the images that only they name. Keeps everything that a
    /// living process published, loaded or used.
    [[nodiscard]] Result<PruneResult> prune(const PruneRequest& request = {});
    /// The result that prune() would have now. Changes nothing, and also works in a read-only store.
    [[nodiscard]] Result<PruneResult> plan_prune(const PruneRequest& request = {}) const;
    /// The budget with its defaults filled in.
    [[nodiscard]] Budget budget() const;

    /// Locks a function for recording: one process at a time. nullptr: another process has the lock. The lock is freed
    /// when this process dies.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_record_lock(const EntryKey& key);
    /// Locks an artifact for a process that reads it, changes it and puts it again.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_artifact_lock(const ArtifactName& name);

    ~LocalStore();

private:
    struct Impl;
    explicit LocalStore(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph::store
