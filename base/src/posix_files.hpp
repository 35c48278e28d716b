// The FileSystem operations on a name in an open folder. Subclasses say how a path is resolved.
#pragma once

#include "posix_descriptor.hpp"

namespace warmgraph::posix {

using SharedDescriptor = std::shared_ptr<const Descriptor>;

/// A name in an open folder.
struct NameInFolder {
    SharedDescriptor folder;
    std::string name;
    Path path; ///< for messages

    [[nodiscard]] int at() const noexcept { return folder->number(); }
};

[[nodiscard]] inline bool is_missing(const Error& error) noexcept { return error.code == ErrorCode::not_found; }

/// Lists a folder. `folder` is read from its start, so it must not be shared with another reader.
[[nodiscard]] Result<std::vector<DirectoryItem>> items_of(const Descriptor& folder, const Path& path);

/// The number of attempts to open a lock's file, which another process may replace meanwhile.
inline constexpr int k_lock_rounds = 16;

/// If this user owns the lock's file, sets its mode and its folder's group. Returns false if the caller must open it
/// again: a file with further hard links may belong to anything and is not changed, so this name of it is removed.
[[nodiscard]] Result<bool> make_lock_file_ours(const NameInFolder& place, const Descriptor& file,
                                               const struct stat& status, std::uint32_t mode);
[[nodiscard]] std::unexpected<Error> replaced_again_and_again(const NameInFolder& place);

[[nodiscard]] Result<std::uint64_t> disk_bytes_of(const Descriptor& folder, const Path& path);

class FilesByDescriptor : public FileSystem {
public:
    Result<std::optional<FileContent>> read(const Path& path, std::uint64_t limit) final;
    Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability) final;
    Result<void> rename(const Path& from, const Path& to, Durability durability) final;
    Result<void> remove(const Path& path) final;
    Result<std::optional<FileInfo>> info(const Path& path) override;
    Result<void> touch(const Path& path) final;
    Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) final;
    Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path& path, std::optional<std::uint32_t> mode) final;

protected:
    /// Returns the folder that holds the last component of the path. not_found: that folder does not exist.
    [[nodiscard]] virtual Result<NameInFolder> find(const Path& path) = 0;
};

} // namespace warmgraph::posix
