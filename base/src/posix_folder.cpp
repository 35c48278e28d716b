#include "posix_folder.hpp"

namespace warmgraph::posix {
namespace {

Result<void> require_names(const Path& path)
{
    for (const Path& part : path)
        if (part == ".." || part == "." || part.is_absolute())
            return fail(ErrorCode::internal, "'{}' is not a path below an opened folder", path.string());
    return {};
}

Result<void> ask(const Admission& admits, const Descriptor& folder, const Path& path)
{
    struct stat status{};
    if (::fstat(folder.number(), &status) != 0) return failed("inspect", path, errno);
    return admits ? admits(info_of(status), path) : Result<void>{};
}

} // namespace

Result<SharedDescriptor> PosixFolder::open_root(const Path& path, const Admission& admits)
{
    auto folder = std::make_shared<const Descriptor>(open_folder_at(AT_FDCWD, path.native()));
    if (!*folder) return failed("open folder", path, errno);
    if (auto ok = ask(admits, *folder, path); !ok) return std::unexpected(ok.error());
    return folder;
}

SharedDescriptor PosixFolder::root()
{
    const std::scoped_lock guard(m_mutex);
    return m_root;
}

Result<SharedDescriptor> PosixFolder::enter(const Descriptor& parent, const std::string& name, const Path& path) const
{
    auto folder = std::make_shared<const Descriptor>(open_folder_at(parent.number(), name));
    if (!*folder) return failed("open folder", path, errno);
    if (auto ok = ask(m_admits, *folder, path); !ok) return std::unexpected(ok.error());
    return folder;
}

Result<SharedDescriptor> PosixFolder::walk(const Path& path)
{
    if (auto ok = require_names(path); !ok) return std::unexpected(ok.error());
    SharedDescriptor folder = root();
    Path shown = m_path;
    for (const Path& part : path) {
        if (part.empty()) continue;
        auto next = enter(*folder, part.native(), shown /= part);
        if (!next) return next;
        folder = std::move(*next);
    }
    return folder;
}

Result<NameInFolder> PosixFolder::find(const Path& path)
{
    if (path.empty() || !path.has_filename())
        return fail(ErrorCode::internal, "'{}' is not a name in an opened folder", path.string());
    if (auto ok = require_names(path.filename()); !ok) return std::unexpected(ok.error());
    auto folder = walk(path.parent_path());
    if (!folder) return std::unexpected(folder.error());
    return NameInFolder{std::move(*folder), path.filename().native(), m_path / path};
}

Result<std::unique_ptr<FileSystem>> PosixFolder::open_folder(const Path& path, Admission admits)
{
    auto folder = walk(path);
    if (!folder) return std::unexpected(folder.error());
    if (auto ok = ask(admits, **folder, m_path / path); !ok) return std::unexpected(ok.error());
    return std::make_unique<PosixFolder>(m_outside, path.empty() ? m_path : m_path / path, std::move(*folder),
                                         std::move(admits));
}

Result<void> PosixFolder::make_root_again(std::uint32_t mode)
{
    struct stat status{};
    if (::fstat(root()->number(), &status) != 0) return failed("inspect", m_path, errno);
    if (status.st_nlink > 0) return {};
    if (auto made = m_outside.make_directories(m_path, mode); !made) return made;
    auto opened = open_root(m_path, m_admits);
    if (!opened) return std::unexpected(opened.error());
    const std::scoped_lock guard(m_mutex);
    m_root = std::move(*opened);
    return {};
}

Result<void> PosixFolder::make_directories(const Path& path, std::uint32_t mode)
{
    if (auto ok = require_names(path); !ok) return ok;
    if (path.empty()) return make_root_again(mode);
    SharedDescriptor folder = root();
    Path shown = m_path;
    for (const Path& part : path) {
        shown /= part;
        auto next = enter(*folder, part.native(), shown);
        if (!next && is_missing(next.error())) {
            if (auto made = make_folder_at(folder->number(), part.native(), mode, shown); !made) return made;
            next = enter(*folder, part.native(), shown);
        }
        if (!next) return std::unexpected(next.error());
        folder = std::move(*next);
    }
    return {};
}

Result<std::vector<DirectoryItem>> PosixFolder::list(const Path& path)
{
    const auto folder = walk(path);
    if (!folder && is_missing(folder.error())) return std::vector<DirectoryItem>{};
    if (!folder) return std::unexpected(folder.error());
    Descriptor own = open_folder_at((*folder)->number(), ".");
    if (!own && errno == ENOENT) return std::vector<DirectoryItem>{}; // the folder was removed
    if (!own) return failed("list", m_path / path, errno);
    return items_of(own, m_path / path);
}

Result<std::optional<FileInfo>> PosixFolder::info(const Path& path)
{
    if (!path.empty()) return FilesByDescriptor::info(path);
    struct stat status{};
    if (::fstat(root()->number(), &status) != 0) return failed("inspect", m_path, errno);
    return status.st_nlink > 0 ? std::optional(info_of(status)) : std::nullopt;
}

Result<std::uint64_t> PosixFolder::disk_bytes(const Path& folder)
{
    const auto opened = walk(folder);
    return opened ? disk_bytes_of(**opened, m_path / folder) : std::unexpected(opened.error());
}

} // namespace warmgraph::posix
