// A folder that stays open: files below are reached through descriptors, one path component at a time, through no link.
#pragma once

#include <mutex>

#include "posix_files.hpp"

namespace warmgraph::posix {

class PosixFolder final : public FilesByDescriptor {
public:
    PosixFolder(FileSystem& outside, Path path, SharedDescriptor root, Admission admits)
        : m_outside(outside), m_path(std::move(path)), m_admits(std::move(admits)), m_root(std::move(root))
    {
    }
    Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission admits) override;
    Result<void> make_directories(const Path& path, std::uint32_t mode) override;
    Result<std::vector<DirectoryItem>> list(const Path& path) override;
    Result<std::optional<FileInfo>> info(const Path& path) override;
    Result<std::uint64_t> disk_bytes(const Path& folder) override;

    /// Opens `path` and asks `admits` whether it may be used.
    static Result<SharedDescriptor> open_root(const Path& path, const Admission& admits);

private:
    Result<NameInFolder> find(const Path& path) override;
    /// Opens the folder at `path` itself, one path component at a time.
    Result<SharedDescriptor> walk(const Path& path);
    /// Opens one folder; refuses links and anything else that is not a folder.
    Result<SharedDescriptor> enter(const Descriptor& parent, const std::string& name, const Path& path) const;
    Result<void> make_root_again(std::uint32_t mode);
    SharedDescriptor root();

    FileSystem& m_outside;
    const Path m_path;
    const Admission m_admits;
    std::mutex m_mutex;
    SharedDescriptor m_root; ///< guarded by m_mutex
};

} // namespace warmgraph::posix
