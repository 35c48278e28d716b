// Whose files are used. What lies in the cache folder is code that runs as this user: whoever may write there could run
// code as this user. So a folder, and a file, is used only where nobody else could have written it.
#pragma once

#include <cstdint>
#include <vector>

#include "tiers/local/layout.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::store {

/// Pure: asks nothing of the disk. Knows the process as it was when this was made.
class FolderTrust {
public:
    /// `folder` is what lies at `root`, the cache folder; its group is what shared files carry. Where the folder has no mark of the library
    /// (`has_mark`), or anybody may put one there, a refusal proposes another folder, and nothing to do to this one.
    FolderTrust(const StoreOptions& options, Path root, const FileInfo& folder, bool has_mark);

    /// For a folder on the way, the root among them. Owner-only: it belongs to this user, to root or to a trusted owner, and
    /// nobody else may write it. Shared: or its group is one of the process's and is the root's, and others may not
    /// write it. permission_denied names the path and the command that cures it.
    [[nodiscard]] Result<void> admits_folder(const FileInfo& folder, const Path& path) const;
    /// For a file whose bytes are to be used: the same. Where it belongs to somebody else, an accepted signature over
    /// `name` and `bytes` does as well, as long as only its owner may write it. An image is verified against its name,
    /// which comes from an entry: it is not asked about.
    [[nodiscard]] Result<void> admits_file(const FileInfo& file, const Path& path, const Name* name,
                                           ByteView bytes) const;
    /// May the root be written to? Only this user's own, or one that is shared.
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
    cachefmt::Trust m_signatures; ///< that are accepted; `require` holds
    std::uint32_t m_user;
    std::vector<std::uint32_t> m_groups; ///< of the process
    std::uint32_t m_group;               ///< of the folder
    bool m_may_be_changed;               ///< the folder is known to be the library's
};

} // namespace warmgraph::store
