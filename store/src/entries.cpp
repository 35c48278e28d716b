#include <unistd.h>

#include "commit.hpp"
#include "disk.hpp"
#include "eviction.hpp"
#include "temporary.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// Removes the lock's file while it is still held, so that recordings leave nothing behind. Whoever opened the file
/// before sees in try_lock that it is no longer the path's, and looks again.
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
        if (::getpid() != m_holder) return; // a forked child: the lock is its parent's
        if (const auto removed = m_files.remove(m_path); !removed)
            log().debug("lock file stays: {}", removed.error().message);
    }

private:
    FileSystem& m_files;
    Path m_path;
    std::unique_ptr<FileLock> m_lock; // released after the file is gone
    pid_t m_holder = ::getpid();
};

/// The verdict for a caller, who knows the key and not the file.
template <class T>
Result<std::optional<T>> named(const Disk& disk, const EntryKey& key, Judged<T>&& judged)
{
    if (!judged.content) return within(disk.layout.relative(disk.layout.entry(key)).string(), judged.content.error());
    return std::move(*judged.content);
}

/// Who opened the folder counts what is untrusted: each entry once, and not at every look.
void count_refused(LocalStore& store, const EntryKey& key, const Judged<Entry>& judged)
{
    const ErrorCode code = judged.content.error().code;
    if (code == ErrorCode::untrusted) return;
    FunctionUsage usage;
    usage.events = one_event(EventKind::damaged, to_string(code), judged.info.size);
    store.add_usage(key.function, usage);
}

} // namespace

Result<std::vector<FunctionKey>> LocalStore::functions() const { return m_impl->disk.functions(); }

Result<std::vector<Variant>> LocalStore::variants(const FunctionKey& function) const
{
    const Disk& disk = m_impl->disk;
    if (auto ok = check_key(function); !ok) return std::unexpected(ok.error());
    const auto digests = disk.entries_of(function);
    if (!digests) return std::unexpected(digests.error());
    std::vector<Variant> found;
    for (const Digest& digest : *digests) {
        auto header = disk.read_header({function, digest}, Asked::by_name);
        if (header && !*header) continue; // evicted meanwhile
        Variant variant{digest, 0, {}, fail(ErrorCode::io_failed, "not read")};
        if (header) {
            variant.size = (*header)->info.size;
            variant.last_used = (*header)->info.modified;
            variant.header = std::move((*header)->content);
        } else {
            variant.header = std::unexpected(header.error());
        }
        found.push_back(std::move(variant));
    }
    return found;
}

Result<std::optional<EntryHeader>> LocalStore::header(const EntryKey& key) const
{
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    auto found = m_impl->disk.read_header(key, Asked::by_key);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return named(m_impl->disk, key, std::move(**found));
}

Result<std::optional<Entry>> LocalStore::entry(const EntryKey& key, Reading reading)
{
    const Disk& disk = m_impl->disk;
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    auto found = disk.read_entry(key, Asked::by_key);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (!(*found)->content) {
        disk.refuse(disk.layout.entry(key), **found);
        count_refused(*this, key, **found);
    } else if (reading == Reading::use) {
        note_use(key);
    }
    return named(disk, key, std::move(**found));
}

void LocalStore::note_use(const EntryKey& key) noexcept
{
    const Disk& disk = m_impl->disk;
    if (!disk.writable() || !check_key(key.function)) return; // the mark that open() found is enough: no file is made
    const auto touched = disk.files.touch(disk.layout.entry(key));
    if (!touched) log().debug("last use not noted: {}", touched.error().message);
}

Result<void> LocalStore::publish(const Entry& entry)
{
    const Disk& disk = m_impl->disk;
    const EntryKey& key = entry.header.key;
    if (auto ok = check_key(key.function); !ok) return ok;
    if (auto ok = disk.may_make(fmt::format("publish {}", key.function.function)); !ok) return ok;
    const auto bytes = cachefmt::encode(entry, {.sign_with = disk.options.trust.sign_with.get()});
    if (!bytes) return within(fmt::format("publish {}", key.function.function), bytes.error());
    const Path path = disk.layout.entry(key);
    if (auto done = commit(disk.files, path, *bytes, disk.modes); !done) {
        return within(fmt::format("publish {}", key.function.function), done.error());
    }
    // The entry is there: what fails from here on is housekeeping, and the next writer's turn.
    remove_abandoned(disk.files, disk.clock, path.parent_path());
    const auto evicted = evict(disk, key.function, key.guards);
    if (!evicted) log().debug("eviction: {}", evicted.error().message);
    if (!evicted || evicted->files == 0) return {};
    FunctionUsage usage;
    usage.events.add(EventKind::evicted, "variants", {evicted->files, evicted->bytes});
    add_usage(key.function, usage);
    return {};
}

Result<void> LocalStore::remove(const EntryKey& key)
{
    const Disk& disk = m_impl->disk;
    if (auto ok = disk.may_remove("remove an entry"); !ok) return ok;
    if (auto ok = check_key(key.function); !ok) return ok;
    return disk.files.remove(disk.layout.entry(key));
}

Result<std::unique_ptr<FileLock>> LocalStore::try_record_lock(const EntryKey& key)
{
    const Disk& disk = m_impl->disk;
    if (auto ok = disk.may_make("record"); !ok) return std::unexpected(ok.error());
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    Path path = disk.layout.record_lock(key);
    const auto try_once = [&]() -> Result<std::unique_ptr<FileLock>> {
        if (auto made = disk.files.make_directories(path.parent_path(), disk.modes.folder); !made)
            return std::unexpected(made.error());
        return disk.files.try_lock(path, disk.modes.file);
    };
    auto lock = try_once();
    // As in commit(): `warmgraph clear` may remove the empty folder in between.
    for (int again = 0; again < 3 && !lock && lock.error().code == ErrorCode::not_found; ++again) lock = try_once();
    if (!lock || !*lock) return lock;
    return std::make_unique<RecordLock>(disk.files, std::move(path), std::move(*lock));
}

} // namespace warmgraph::store
