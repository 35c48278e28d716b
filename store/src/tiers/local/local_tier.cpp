#include "tiers/local/local_tier.hpp"

#include <exception>

#include <unistd.h>

#include "tiers/local/commit.hpp"
#include "tiers/local/folder_tag.hpp"
#include "tiers/local/quarantine.hpp"
#include "tiers/local/temporary.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// Removes the lock's file before it releases the lock, so that recordings leave nothing behind. A process that has
/// opened the file already sees in try_lock that the path has no such file any more, and opens it again.
class RecordLock final : public FileLock {
public:
    RecordLock(FileSystem& files, Path path, std::unique_ptr<FileLock> lock)
        : m_files(files), m_path(std::move(path)), m_lock(std::move(lock))
    {
    }
    RecordLock(const RecordLock&) = delete;
    RecordLock& operator=(const RecordLock&) = delete;
    ~RecordLock() override
    {
        if (::getpid() != m_holder) return; // in a forked child the lock belongs to the parent
        if (const auto removed = m_files.remove(m_path); !removed)
            log().debug("cannot remove a lock file: {}", removed.error().message);
    }

private:
    FileSystem& m_files;
    Path m_path;
    std::unique_ptr<FileLock> m_lock; // released after the file was removed
    pid_t m_holder = ::getpid();
};

} // namespace

/// Makes a deleted root again before `work`, and once more if it is deleted between the two steps.
template <class Work>
auto LocalTier::made_in_root(std::string_view doing, const Work& work) -> decltype(work())
{
    constexpr int k_tries = 3;
    for (int i = 1;; ++i) {
        if (auto ok = m_disk.may_make(doing); !ok) return std::unexpected(ok.error());
        auto done = work();
        if (done || done.error().code != ErrorCode::not_found || i == k_tries) return done;
    }
}

Result<std::optional<StampedBytes>> LocalTier::get(const Name& name, ReadLimit extent)
{
    return m_disk.read(m_disk.layout.path(name), extent, &name);
}

Result<void> LocalTier::put(const Name& name, ByteView bytes, PutMode mode)
{
    const Path path = m_disk.layout.path(name);
    const auto* const key = std::get_if<EntryKey>(&name);
    if (mode == PutMode::create_only)
        if (const auto there = m_disk.files.info(path); there && *there) return {};
    Result<std::optional<FileInfo>> previous;
    const auto done = made_in_root("write", [&] {
        if (key != nullptr) m_leases.take(*key);
        if (key != nullptr) previous = m_disk.files.info(path);
        // A copy of another tier's object needs no sync: a torn one is damaged, and then fetched again.
        return commit(m_disk.files, path, bytes, m_disk.modes,
                      mode == PutMode::create_only ? Durability::unsynced : Durability::synced);
    });
    if (!done) return done;
    ++m_files_written;
    m_bytes_written += bytes.size();
    m_bytes_of_kinds[static_cast<std::size_t>(row_of(kind_of(name)).part_of)] += bytes.size();
    if (previous && *previous) ++m_replaced;
    // The file is written: a failure from here on concerns clean-up only, and the next writer repeats it.
    touch_tag();
    remove_abandoned(m_disk.files, m_disk.clock, path.parent_path());
    if (mode == PutMode::replace && m_listener) m_listener(name);
    return {};
}

Result<void> LocalTier::remove(const Name& name)
{
    if (auto ok = m_disk.may_remove("remove"); !ok) return ok;
    return m_disk.files.remove(m_disk.layout.path(name));
}

Result<std::vector<Name>> LocalTier::list(const Scope& scope)
{
    if (is_blob(scope.kind)) return m_disk.image_names();
    if (scope.kind != ArtifactKind::entries) return m_disk.artifact_names(scope.kind);
    if (scope.function) return m_disk.entry_names(*scope.function);
    const auto functions = m_disk.functions();
    if (!functions) return std::unexpected(functions.error());
    std::vector<Name> names;
    for (const FunctionKey& function : *functions) {
        const auto entries = m_disk.entry_names(function);
        if (!entries) return entries;
        names.insert(names.end(), entries->begin(), entries->end());
    }
    return names;
}

Result<std::vector<StampedEntry>> LocalTier::get_entries(const FunctionKey& function, ReadLimit extent)
{
    return m_disk.read_entries(function, extent);
}

Result<void> LocalTier::note_use(const Name& name)
{
    if (const auto* const key = std::get_if<EntryKey>(&name)) m_leases.take(*key);
    // The mark that open() found suffices, because this call makes no file.
    if (auto ok = m_disk.require_writable("note a use"); !ok) return ok;
    if (!m_has_used.exchange(true)) touch_tag();
    return m_disk.files.touch(m_disk.layout.path(name));
}

/// Keeps the mark young: programs that clean up by age would remove it first, since no other call touches it.
void LocalTier::touch_tag() const
{
    if (const auto touched = m_disk.files.touch(k_tag_file); !touched)
        log().debug("cannot update the time of CACHEDIR.TAG: {}", touched.error().message);
}

void LocalTier::refuse(const Name& name, const Stamp& stamp, const Error& reason) noexcept
try {
    if (m_disk.writable() && has_tag(m_disk.files)) quarantine(m_disk, m_disk.layout.path(name), stamp, reason);
} catch (const std::exception& error) {
    log().debug("cannot move it to quarantine: {}", error.what());
}

Result<std::unique_ptr<FileLock>> LocalTier::try_record_lock(const EntryKey& key)
{
    return made_in_root("record", [&] { return try_lock(m_disk.layout.record_lock(key)); });
}

Result<std::unique_ptr<FileLock>> LocalTier::try_artifact_lock(const ArtifactName& name)
{
    // Do not make a deleted cache again to lock an artifact that was in it.
    if (auto ok = m_disk.require_writable("write"); !ok) return std::unexpected(ok.error());
    if (!has_tag(m_disk.files))
        return fail(ErrorCode::permission_denied, "{} has lost its CACHEDIR.TAG: nothing is written there",
                    m_disk.layout.root().string());
    return try_lock(Layout::artifact_lock(name));
}

Result<std::unique_ptr<FileLock>> LocalTier::try_lock(Path path)
{
    const auto try_once = [&]() -> Result<std::unique_ptr<FileLock>> {
        if (auto made = m_disk.files.make_directories(path.parent_path(), m_disk.modes.folder); !made)
            return std::unexpected(made.error());
        return m_disk.files.try_lock(path, m_disk.modes.file);
    };
    auto lock = try_once();
    // As in commit(): `warmgraph clear` may remove the empty folder in between.
    for (int again = 0; again < 3 && !lock && lock.error().code == ErrorCode::not_found; ++again) lock = try_once();
    if (!lock || !*lock) return lock;
    return std::make_unique<RecordLock>(m_disk.files, std::move(path), std::move(*lock));
}

} // namespace warmgraph::store
