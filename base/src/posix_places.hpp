// All of a FileSystem but how a path is reached: each operation works on a name in a folder that is open.
#pragma once

#include "posix_descriptor.hpp"

namespace warmgraph::posix {

using SharedDescriptor = std::shared_ptr<const Descriptor>;

/// A name in a folder that is open.
struct Place {
    SharedDescriptor folder;
    std::string name;
    Path path; ///< for messages

    [[nodiscard]] int at() const noexcept { return folder->number(); }
};

[[nodiscard]] inline bool is_missing(const Error& error) noexcept { return error.code == ErrorCode::not_found; }

/// `folder` is read from its start, so it must not be shared with another reader.
[[nodiscard]] Result<std::vector<DirectoryItem>> items_of(const Descriptor& folder, const Path& path);

/// A lock's file may be replaced while it is opened: so often is it opened anew. More is a folder gone mad.
inline constexpr int k_lock_rounds = 16;

/// Gives a lock's file, if it is this user's, its mode and its folder's group. False: open it anew. Where another name
/// leads to the same file, that may be anybody's, and keeps its own mode and group: its name here is removed.
[[nodiscard]] Result<bool> make_lock_file_ours(const Place& place, const Descriptor& file, const struct stat& status,
                                               std::uint32_t mode);
[[nodiscard]] std::unexpected<Error> replaced_again_and_again(const Place& place);

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
    /// The folder that the path's last name lies in. not_found: there is none.
    [[nodiscard]] virtual Result<Place> find(const Path& path) = 0;
};

} // namespace warmgraph::posix
