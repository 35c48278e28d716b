#include "warmgraph/store/local_store.hpp"

#include <system_error>

#include <unistd.h>

#include "disk.hpp"
#include "mark.hpp"
#include "temporary.hpp"

namespace warmgraph::store {
namespace {

constexpr std::string_view k_other_folder = "set WARMGRAPH_CACHE_DIR or cache_dir to a folder of your own";

Result<Path> resolve(const Path& root)
{
    if (root.empty()) return fail(ErrorCode::invalid_argument, "cache folder is empty: {}", k_other_folder);
    if (root.native().find('\0') != std::string::npos) {
        return fail(ErrorCode::invalid_argument, "cache folder has a NUL byte: {}", k_other_folder);
    }
    std::error_code error;
    const Path absolute = std::filesystem::absolute(root, error).lexically_normal();
    if (error)
        return fail(ErrorCode::io_failed, "cannot resolve cache folder '{}': {}", root.string(), error.message());
    return absolute.has_filename() ? absolute : absolute.parent_path();
}

/// What info() says about the folder; a link is followed, for people who keep caches on another disk.
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

/// Whether a folder that is not to be written for this reason may be read.
bool is_still_readable(FileSystem& files, const Path& root, const FileInfo& info, const Error& error)
{
    const bool is_unwritable = error.code == ErrorCode::permission_denied || error.code == ErrorCode::no_space;
    // Another owner's that somebody else may write holds code of whoever did.
    constexpr std::uint32_t k_others_write = 022;
    const bool is_trusted = info.owner == ::geteuid() || (info.mode & k_others_write) == 0;
    return is_unwritable && is_trusted && has_mark(files, root);
}

Result<void> check_owner(const Path& root, const FileInfo& info, const StoreOptions& options)
{
    const auto user = ::geteuid();
    if (info.owner == user || options.sharing == Sharing::group) return {};
    if (options.access == Access::read_only && info.owner == 0) return {};
    return fail(ErrorCode::permission_denied,
                "cache folder {} belongs to user {}, expected {}: {}, or share it with your group (share_with_group)",
                root.string(), info.owner, user, k_other_folder);
}

/// access() says yes to root even where writing fails, so something is written: a lock file, which is not synced.
Result<void> check_writable(FileSystem& files, const Path& root, Modes modes)
{
    const Path probe = root / temporary_name();
    const auto made = files.try_lock(probe, modes.file);
    const auto removed = files.remove(probe);
    if (!made) return within(fmt::format("cache folder {} is not writable", root.string()), made.error());
    return removed;
}

/// Nothing is written, no probe either, before it is clear that the folder is the library's or empty.
Result<void> check_place(FileSystem& files, const Path& root, Modes modes)
{
    if (auto ok = refuse_foreign(files, root); !ok) return ok;
    if (auto ok = check_writable(files, root, modes); !ok) return ok;
    return ensure_mark(files, root, modes);
}

} // namespace

LocalStore::LocalStore(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}

Result<std::unique_ptr<LocalStore>> LocalStore::open(const std::filesystem::path& given, const StoreOptions& options,
                                                     FileSystem& files, Clock& clock)
{
    auto root = resolve(given);
    if (!root) return std::unexpected(root.error());
    const Modes modes = modes_of(options.sharing);
    const bool writable = options.access == Access::read_write;

    auto info = inspect(files, *root);
    if (info && !*info && writable) {
        if (auto made = files.make_directories(*root, modes.folder); !made) {
            return within(fmt::format("cannot make cache folder {} ({})", root->string(), k_other_folder),
                          made.error());
        }
        info = files.info(*root);
    }
    if (!info) return within(fmt::format("cannot open cache folder ({})", k_other_folder), info.error());
    if (!*info)
        return fail(ErrorCode::not_found, "cache folder {} does not exist: record first, or {}", root->string(),
                    k_other_folder);
    if ((*info)->type != FileType::directory) {
        return fail(ErrorCode::io_failed, "cache folder {} is a file, expected a folder: remove it, or {}",
                    root->string(), k_other_folder);
    }
    auto ok = check_owner(*root, **info, options);
    if (ok && writable) ok = check_place(files, *root, modes);
    StoreOptions opened = options;
    if (!ok && writable && options.falls_back && is_still_readable(files, *root, **info, ok.error())) {
        opened.access = Access::read_only;
        if (auto readable = check_owner(*root, **info, opened); !readable) return std::unexpected(readable.error());
    } else if (!ok) {
        return std::unexpected(ok.error());
    }
    auto impl = std::unique_ptr<Impl>(
        new Impl{.disk = {Layout(*root), opened, modes, files, clock}, .why_read_only = ok ? "" : ok.error().message});
    return std::unique_ptr<LocalStore>(new LocalStore(std::move(impl)));
}

const std::string& LocalStore::why_read_only() const noexcept { return m_impl->why_read_only; }
const std::filesystem::path& LocalStore::root() const noexcept { return m_impl->disk.layout.root(); }

} // namespace warmgraph::store
