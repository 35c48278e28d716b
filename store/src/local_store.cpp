#include "warmgraph/store/local_store.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <system_error>

#include <unistd.h>

#include "copies.hpp"
#include "tiers/local/folder_tag.hpp"
#include "tiers/local/load_marks.hpp"
#include "tiers/local/local_tier.hpp"
#include "tiers/local/no_folder.hpp"
#include "tiers/local/remote_marks.hpp"
#include "tiers/local/temporary.hpp"
#include "upkeep/inventory.hpp"
#include "upkeep/upkeep.hpp"
#include "usage/misses.hpp"
#include "usage/usage.hpp"
#include "warmgraph/base/cache_folder.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

constexpr std::string_view k_other_folder = "set WARMGRAPH_CACHE_DIR or cache_dir to a folder of your own";

Result<Path> resolve(const Path& root)
{
    if (root.empty()) return fail(ErrorCode::invalid_argument, "cache folder is empty: {}", k_other_folder);
    if (root.native().find('\0') != std::string::npos) {
        return fail(ErrorCode::invalid_argument, "cache folder has a NUL byte: {}", k_other_folder);
    }
    Path absolute = absolute_folder(root);
    if (!absolute.is_absolute())
        return fail(ErrorCode::io_failed, "cannot resolve cache folder '{}': the working directory is gone",
                    root.string());
    return absolute;
}

/// Returns the folder's FileInfo. A link is followed, for people who keep caches on another disk.
Result<std::optional<FileInfo>> inspect(FileSystem& files, Path& root)
{
    auto info = files.info(root);
    if (!info || !*info || (*info)->type != FileType::other) return info;
    std::error_code error;
    const Path target = std::filesystem::canonical(root, error);
    if (error) return info;
    root = target;
    return files.info(root);
}

/// Makes the folder if it is missing and may be made. A link in `root` is replaced by its target.
Result<FileInfo> find_or_make(FileSystem& files, Path& root, const StoreOptions& options)
{
    auto info = inspect(files, root);
    if (info && !*info && options.access == StoreMode::read_write) {
        if (auto made = files.make_directories(root, modes_of(options.sharing).folder); !made)
            return within(fmt::format("cannot make cache folder {} ({})", root.string(), k_other_folder), made.error());
        info = files.info(root);
    }
    if (!info) return within(fmt::format("cannot open cache folder ({})", k_other_folder), info.error());
    if (!*info)
        return fail(ErrorCode::not_found, "cache folder {} does not exist: record first, or {}", root.string(),
                    k_other_folder);
    if ((*info)->type != FileType::directory)
        return fail(ErrorCode::io_failed, "cache folder {} is a file, expected a folder: {}", root.string(),
                    k_other_folder);
    return **info;
}

/// Writes a lock file (not synced) as a test, because access() gives root a yes even when writing fails.
Result<void> check_writable(FileSystem& folder, const Path& root, Modes modes)
{
    const Path probe = temporary_name();
    const auto made = folder.try_lock(probe, modes.file);
    const auto removed = folder.remove(probe);
    if (!made) return within(fmt::format("cache folder {} is not writable", root.string()), made.error());
    if (!removed) return within(fmt::format("cache folder {} is not writable", root.string()), removed.error());
    return {};
}

/// Writes nothing, not even a probe, before it is clear that the folder is empty or a cache folder, and that it belongs
/// to the user.
Result<void> prepare_writing(FileSystem& folder, const Path& root, const StoreOptions& options,
                             const FolderTrust& trust)
{
    const auto info = folder.info("");
    if (!info) return within(fmt::format("cache folder {}", root.string()), info.error());
    if (*info)
        if (auto ok = trust.admits_writing(**info, root); !ok) return ok;
    const Modes modes = modes_of(options.sharing);
    if (auto ok = refuse_foreign(folder, root); !ok) return ok;
    if (auto ok = check_writable(folder, root, modes); !ok) return ok;
    return ensure_tag(folder, root, modes);
}

/// Whether the folder may be opened read-only although it cannot be written, for this reason.
bool is_still_readable(FileSystem& folder, const Error& error)
{
    return (error.code == ErrorCode::permission_denied || error.code == ErrorCode::no_space) && has_tag(folder);
}

/// A folder that may be read, opened once for all later calls.
struct OpenFolder {
    Path root;
    FolderTrust trust;
    std::unique_ptr<FileSystem> folder;
};

Result<OpenFolder> open_folder(FileSystem& files, Path root, const StoreOptions& options)
{
    const auto info = find_or_make(files, root, options);
    if (!info) return std::unexpected(info.error());
    const auto mark = files.read(root / k_tag_file, k_tag_cap);
    const FolderTrust trust(options, root, *info, mark && *mark && is_tag((*mark)->bytes));
    // The opened folder is checked again, because another folder may have taken the path meanwhile.
    auto folder = files.open_folder(
        root, [trust](const FileInfo& opened, const Path& path) { return trust.admits_folder(opened, path); });
    if (!folder) return std::unexpected(folder.error());
    return OpenFolder{std::move(root), trust, std::move(*folder)};
}

} // namespace

struct LocalStore::Impl {
    std::unique_ptr<FileSystem> folder;
    LocalTier tier;
    std::string why_read_only;
    LoadMarks load_marks{tier.disk()};
    Usage usage{tier.disk(), [this]() noexcept { return load_marks.settle(); }};
    Upkeep upkeep{tier};
    pid_t process = ::getpid(); ///< the process that opened the store
    Copies copies{[this](const Name& name, ByteView bytes) { keep(name, bytes); }}; ///< ends before what it uses

    void count(const EntryKey& key, EventKind kind, std::string_view reason, const Tally& tally)
    {
        FunctionUsage more;
        more.events.add(kind, reason, tally);
        if (check_key(key.function)) usage.add(tier.disk().layout.function(key.function), more);
    }

    /// Counts a refused entry. Untrusted entries are counted elsewhere: each once by the code that opened the folder,
    /// not at every read.
    void count_refused(const EntryKey& key, const Stamp& stamp, const Error& error)
    {
        if (error.code != ErrorCode::untrusted) count(key, EventKind::damaged, to_string(error.code), {1, stamp.size});
    }
    /// Writes a copy of a remote's object. The first tier decides what happens in a folder that is only read.
    void keep(const Name& name, ByteView bytes) noexcept
    try {
        const auto kept = tier.put(name, bytes, PutMode::create_only);
        if (!kept) log().debug("{} is not kept: {}", to_text(name), kept.error().message);
        if (const auto* const key = std::get_if<EntryKey>(&name); kept && key != nullptr) after_publish(*key);
    } catch (const std::exception& error) {
        log().debug("an object of a remote is not kept: {}", error.what());
    }
    void after_publish(const EntryKey& key)
    {
        load_marks.forget(key);
        const auto count_evicted = [this, key](std::string_view why, const Removal::Amount& gone) {
            if (gone.files != 0) count(key, EventKind::evicted, why, {gone.files, gone.bytes});
        };
        count_evicted("variants",
                      upkeep.after_publish(key, [=](const Removal::Amount& gone) { count_evicted("budget", gone); }));
    }
    [[nodiscard]] StoreEvents events()
    {
        return {[this](const auto& key, const auto& stamp, const auto& error) { count_refused(key, stamp, error); },
                [this](const EntryKey& key) { after_publish(key); },
                [this](const EntryKey& key) { load_marks.forget(key); },
                [this](const Name& name, Bytes bytes) {
                    if (tier.disk().writable()) copies.add(name, std::move(bytes));
                }};
    }
};

LocalStore::LocalStore(std::unique_ptr<Impl> impl)
    : Store(impl->tier, caps_of(impl->tier.disk().options), impl->events()), m_impl(std::move(impl))
{
}

Result<std::unique_ptr<LocalStore>> LocalStore::open(const std::filesystem::path& given, const StoreOptions& options,
                                                     FileSystem& files, Clock& clock)
{
    auto root = resolve(given);
    if (!root) return std::unexpected(root.error());
    auto opened = open_folder(files, std::move(*root), options);
    if (!opened) return std::unexpected(opened.error());
    StoreOptions actual = options;
    std::string why_read_only;
    if (options.access == StoreMode::read_write) {
        const auto ready = prepare_writing(*opened->folder, opened->root, options, opened->trust);
        if (!ready && (!options.falls_back || !is_still_readable(*opened->folder, ready.error())))
            return std::unexpected(ready.error());
        if (!ready) {
            actual.access = StoreMode::read_only;
            why_read_only = ready.error().message;
        }
    }
    FileSystem& folder = *opened->folder;
    auto impl = std::unique_ptr<Impl>(
        new Impl{std::move(opened->folder),
                 LocalTier({Layout(opened->root), actual, modes_of(options.sharing), opened->trust, folder, clock}),
                 std::move(why_read_only)});
    return std::unique_ptr<LocalStore>(new LocalStore(std::move(impl)));
}

std::unique_ptr<LocalStore> LocalStore::without_folder(std::string why, const StoreOptions& options)
{
    StoreOptions actual = options;
    actual.access = StoreMode::read_only;
    auto folder = no_folder();
    FileSystem& files = *folder;
    auto impl = std::unique_ptr<Impl>(new Impl{std::move(folder),
                                               LocalTier({Layout("/"), actual, modes_of(options.sharing),
                                                          FolderTrust(actual, {}, {}, false), files, system_clock()}),
                                               std::move(why)});
    return std::unique_ptr<LocalStore>(new LocalStore(std::move(impl)));
}

LocalStore::~LocalStore()
{
    // A forked child has no store thread to end, and its parent writes the pending usage.
    if (::getpid() != m_impl->process)
        static_cast<void>(m_impl.release());
    else
        m_impl->upkeep.before_close();
}

const std::string& LocalStore::why_read_only() const noexcept { return m_impl->why_read_only; }
const std::filesystem::path& LocalStore::root() const noexcept { return m_impl->tier.disk().layout.root(); }

Result<std::vector<FunctionKey>> LocalStore::functions() const
{
    auto functions = m_impl->tier.disk().functions();
    const Tiers tiers = this->tiers();
    if (tiers.size() == 1) return functions;
    std::set<FunctionKey> all;
    if (functions) all.insert(functions->begin(), functions->end());
    for (std::size_t i = 1; i < tiers.size(); ++i) {
        if (tiers[i]->is_remote()) continue; // it may have the functions of a whole fleet
        const auto names = tiers[i]->list({});
        if (!names && functions) functions = std::unexpected(names.error());
        if (!names) continue;
        for (const Name& name : *names)
            if (const auto* const key = std::get_if<EntryKey>(&name)) all.insert(key->function);
    }
    if (!functions && all.empty()) return functions;
    return std::vector(all.begin(), all.end());
}

void LocalStore::wait_for_copies() { m_impl->copies.wait(); }
void LocalStore::listen(std::function<void(const Name&)> listener) { m_impl->tier.listen(std::move(listener)); }
Result<void> LocalStore::set_mark(std::string_view remote, RemoteMark mark, const std::string& name)
{
    return store::set_mark(m_impl->tier.disk(), remote, mark, name);
}
Result<void> LocalStore::clear_mark(std::string_view remote, RemoteMark mark, const std::string& name)
{
    return store::clear_mark(m_impl->tier.disk(), remote, mark, name);
}
Result<std::vector<std::string>> LocalStore::marks(std::string_view remote, RemoteMark mark) const
{
    return store::marks(m_impl->tier.disk(), remote, mark);
}

Result<std::unique_ptr<LoadMark>> LocalStore::begin_load(const EntryKey& key, const LoadTarget& target)
{
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    return m_impl->load_marks.begin(key, target);
}
void LocalStore::end_load_behind(std::unique_ptr<LoadMark> mark, IsDone is_done) noexcept
{
    if (!mark) return;
    m_impl->load_marks.end_behind(std::move(mark), std::move(is_done));
    if (m_impl->load_marks.settle()) m_impl->usage.look_soon();
}
void LocalStore::settle_loads() noexcept { static_cast<void>(m_impl->load_marks.settle()); }
Result<std::vector<std::pair<Digest, std::uint64_t>>> LocalStore::images() const
{
    return m_impl->tier.disk().images();
}

void LocalStore::add_usage(const FunctionKey& function, const FunctionUsage& more) noexcept
{
    if (check_key(function)) m_impl->usage.add(m_impl->tier.disk().layout.function(function), more);
}
void LocalStore::add_usage_soon(const FunctionKey& function, const FunctionUsage& more) noexcept
{
    if (check_key(function)) m_impl->usage.add_soon(m_impl->tier.disk().layout.function(function), more);
}
void LocalStore::expect_usage() noexcept { m_impl->usage.expect(); }
FunctionUsage LocalStore::usage(const FunctionKey& function) const
{
    return check_key(function) ? m_impl->usage.of(m_impl->tier.disk().layout.function(function)) : FunctionUsage{};
}
void LocalStore::add_usage_soon(ArtifactKind kind, const FunctionUsage& more) noexcept
{
    m_impl->usage.add_soon(Layout::artifacts(kind), more);
}
FunctionUsage LocalStore::usage(ArtifactKind kind) const { return m_impl->usage.of(Layout::artifacts(kind)); }
void LocalStore::add_remote_usage(const FunctionUsage& more) noexcept { m_impl->usage.add(Path(k_remotes), more); }
FunctionUsage LocalStore::remote_usage() const { return m_impl->usage.of(Path(k_remotes)); }

void LocalStore::note_miss(const FunctionKey& function, const Miss& miss, std::string_view call) noexcept
try {
    if (!why_read_only().empty() || !check_key(function)) return;
    if (const auto done = write_miss(m_impl->tier.disk(), m_impl->tier.disk().layout.function(function), miss, call);
        !done)
        log().debug("a miss of {} is not written down: {}", function.function, done.error().message);
} catch (const std::exception& error) {
    log().debug("a miss of a function is not written down: {}", error.what());
}

Result<Misses> LocalStore::misses(const FunctionKey& function) const
{
    if (auto ok = check_key(function); !ok) return std::unexpected(ok.error());
    auto misses = read_misses(m_impl->tier.disk(), m_impl->tier.disk().layout.function(function));
    if (!misses) return within(std::string(k_miss_file), misses.error());
    return misses;
}

void LocalStore::note_program_miss(const Miss& miss) noexcept
try {
    if (!why_read_only().empty()) return;
    if (const auto done = write_miss(m_impl->tier.disk(), Layout::artifacts(ArtifactKind::compiled), miss, ""); !done)
        log().debug("a miss of the program '{}' is not written down: {}", miss.program, done.error().message);
} catch (const std::exception& error) {
    log().debug("a miss of a program is not written down: {}", error.what());
}

Result<Misses> LocalStore::program_misses() const
{
    auto misses = read_misses(m_impl->tier.disk(), Layout::artifacts(ArtifactKind::compiled));
    if (!misses) return within((Layout::artifacts(ArtifactKind::compiled) / k_miss_file).string(), misses.error());
    return misses;
}

Result<std::map<ArtifactKind, Removal::Amount>> LocalStore::held() const
{
    const auto inventory = take_inventory(m_impl->tier.disk(), {});
    if (!inventory) return std::unexpected(inventory.error());
    std::map<ArtifactKind, Removal::Amount> held;
    for (const ArtifactKind kind : kinds_for(KindUse::budgeted)) held[kind] = inventory->total(kind);
    return held;
}

void LocalStore::make_room() noexcept { m_impl->upkeep.make_room(); }

Result<std::vector<Damage>> LocalStore::check(const ArtifactVerifier& verifier) const
{
    return m_impl->upkeep.check(verifier);
}
Result<std::vector<Damage>> LocalStore::repair(const ArtifactVerifier& verifier)
{
    return m_impl->upkeep.repair(verifier);
}
Result<Removal> LocalStore::plan_clear(const ClearRequest& request) const { return m_impl->upkeep.plan_clear(request); }
Result<PruneResult> LocalStore::prune(const PruneRequest& request) { return m_impl->upkeep.prune(request); }
Result<PruneResult> LocalStore::plan_prune(const PruneRequest& request) const
{
    return m_impl->upkeep.plan_prune(request);
}
Budget LocalStore::budget() const { return m_impl->upkeep.budget(); }
Result<Removal> LocalStore::clear(const ClearRequest& request) { return m_impl->upkeep.clear(request); }

Result<std::unique_ptr<FileLock>> LocalStore::try_record_lock(const EntryKey& key)
{
    if (auto ok = check_key(key.function); !ok) return std::unexpected(ok.error());
    return m_impl->tier.try_record_lock(key);
}
Result<std::unique_ptr<FileLock>> LocalStore::try_artifact_lock(const ArtifactName& name)
{
    return m_impl->tier.try_artifact_lock(name);
}

} // namespace warmgraph::store
