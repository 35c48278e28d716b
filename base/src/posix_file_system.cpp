#include "posix_folder.hpp"

namespace warmgraph {
namespace {

using posix::Descriptor;
using posix::failed;
using posix::retry;

/// Resolves absolute paths, through links, for paths that a user gave.
class PosixFileSystem final : public posix::FilesByDescriptor {
public:
    Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission admits) override
    {
        auto root = posix::PosixFolder::open_root(path, admits);
        if (!root) return std::unexpected(root.error());
        return std::make_unique<posix::PosixFolder>(*this, path, std::move(*root), std::move(admits));
    }
    Result<void> make_directories(const Path& path, std::uint32_t mode) override;
    Result<std::vector<DirectoryItem>> list(const Path& path) override
    {
        Descriptor folder(retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
        if (!folder && errno == ENOENT) return std::vector<DirectoryItem>{};
        if (!folder) return failed("list", path, errno);
        return posix::items_of(folder, path);
    }
    Result<std::uint64_t> disk_bytes(const Path& folder) override
    {
        const Descriptor opened(retry([&] { return ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
        return opened ? posix::disk_bytes_of(opened, folder) : failed("inspect the disk of", folder, errno);
    }

private:
    Result<posix::NameInFolder> find(const Path& path) override
    {
        const Path parent = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
        auto folder = std::make_shared<const Descriptor>(
            retry([&] { return ::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
        if (!*folder) return failed("open", path, errno);
        const Path name = path.has_filename() ? path.filename() : path.parent_path().filename();
        return posix::NameInFolder{std::move(folder), name.empty() ? "." : name.native(), path};
    }
};

Result<void> PosixFileSystem::make_directories(const Path& path, std::uint32_t mode)
{
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0)
        return S_ISDIR(status.st_mode) ? Result<void>{} : failed("make folder", path, ENOTDIR);
    if (errno != ENOENT) return failed("make folder", path, errno);
    const Path parent = path.parent_path();
    if (path.has_relative_path())
        if (auto made = make_directories(parent, mode); !made) return made;
    const Descriptor folder(retry([&] { return ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!folder) return failed("make folder", path, errno);
    return posix::make_folder_at(folder.number(), path.filename().native(), mode, path);
}

} // namespace

FileSystem& posix_file_system() noexcept
{
    static PosixFileSystem& files = *new PosixFileSystem; // never destroyed: threads may outlive main()
    return files;
}

} // namespace warmgraph
