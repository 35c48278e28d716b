// Decides which folders and files may be used. The cache folder holds code that runs as this user, so any user that can
// write to it could run code as this user. A folder or file is used only if no other user could have written it.
#pragma once

#include <cstdint>
#include <vector>

#include "tiers/local/layout.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::store {

/// Pure: does not touch the disk. Keeps the process's user and groups from the time of construction.
class FolderTrust {
public:
    /// `folder` describes `root`, the cache folder; shared files must have its group. If the folder has no mark of the
    /// library (`has_tag`), or every user could put a mark there, a refusal proposes another folder, and no change of
    /// this folder.
    FolderTrust(const StoreOptions& options, Path root, const FileInfo& folder, bool has_tag);

    /// Checks a folder on the path, the root included. Owner-only: the folder belongs to this user, to root or to a
    /// trusted owner, and no other user may write it. Shared: a folder is also accepted when it has the root's group,
    /// the process is in this group, and others may not write it. permission_denied names the path and the command that
    /// cures it.
    [[nodiscard]] Result<void> admits_folder(const FileInfo& folder, const Path& path) const;
    /// Checks a file before its bytes are used, by the same rules as a folder. A foreign owner's file is also accepted
    /// with an accepted signature over `name` and `bytes`, if only its owner may write it. Images always pass this
    /// check: their name is their digest and comes from an entry.
    [[nodiscard]] Result<void> admits_file(const FileInfo& file, const Path& path, const Name* name,
                                           ByteView bytes) const;
    /// Whether the root may be written: only this user's own folder, or a shared folder.
    [[nodiscard]] Result<void> admits_writing(const FileInfo& root, const Path& path) const;

private:
    [[nodiscard]] bool is_trusted_owner(std::uint32_t owner) const noexcept;
    [[nodiscard]] bool is_shared(const FileInfo& info) const noexcept;
    [[nodiscard]] bool takes_signatures() const noexcept;
    [[nodiscard]] bool is_covered(const Name& name, ByteView bytes) const;
    [[nodiscard]] Error refusal(const FileInfo& info, const Path& path) const;

    Path m_root; ///< for messages
    Sharing m_sharing;
    std::vector<std::uint32_t> m_trusted_owners;
    cachefmt::Limits m_limits;
    cachefmt::Trust m_signatures; ///< accepted signatures; `require` is set
    std::uint32_t m_user;
    std::vector<std::uint32_t> m_groups; ///< the process's groups
    std::uint32_t m_group;               ///< the folder's group
    bool m_may_be_changed;               ///< the folder is known to belong to the library
};

} // namespace warmgraph::store
