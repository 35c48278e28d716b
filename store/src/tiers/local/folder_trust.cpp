#include "tiers/local/folder_trust.hpp"

#include <algorithm>

#include <unistd.h>

#include "tiers/local/folder_tag.hpp"
#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::store {
namespace {

constexpr std::uint32_t k_group_writes = 0020;
constexpr std::uint32_t k_others_write = 0002;
constexpr std::uint32_t k_sticky = 01000; ///< the mode bit of folders in which every user may write, such as /tmp

std::vector<std::uint32_t> groups_of_process()
{
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    groups.push_back(::getegid());
    return {groups.begin(), groups.end()};
}

std::string_view kind_of(const FileInfo& info) noexcept { return info.type == FileType::directory ? "folder" : "file"; }

} // namespace

FolderTrust::FolderTrust(const StoreOptions& options, Path root, const FileInfo& folder, bool has_tag)
    : m_root(std::move(root)),
      m_sharing(options.sharing),
      m_trusted_owners(options.trusted_owners),
      m_limits(options.limits),
      m_signatures(options.trust),
      m_user(::geteuid()),
      m_groups(groups_of_process()),
      m_group(folder.group),
      m_may_be_changed(has_tag && (folder.mode & k_sticky) == 0)
{
    m_signatures.require = true;
}

bool FolderTrust::is_trusted_owner(std::uint32_t owner) const noexcept
{
    return owner == m_user || owner == 0 || std::ranges::find(m_trusted_owners, owner) != m_trusted_owners.end();
}

bool FolderTrust::is_shared(const FileInfo& info) const noexcept
{
    return m_sharing == Sharing::group && info.group == m_group && (info.mode & k_others_write) == 0 &&
           std::ranges::find(m_groups, m_group) != m_groups.end();
}

bool FolderTrust::takes_signatures() const noexcept { return m_signatures.sign_with || !m_signatures.accepted.empty(); }

bool FolderTrust::is_covered(const Name& name, ByteView bytes) const
{
    if (!takes_signatures()) return false;
    const auto* const key = std::get_if<EntryKey>(&name);
    // A signed entry covers its images by their digests. Other kinds are not covered: their readers may not require a
    // signature.
    if (key == nullptr) return std::holds_alternative<ImageName>(name);
    // Accepted for now: the header is not read yet, and the read of more bytes checks again.
    if (bytes.size() < cachefmt::k_envelope_bytes) return true;
    const auto extent = cachefmt::header_extent(bytes, m_limits);
    if (!extent) return false;
    return *extent > bytes.size() || cachefmt::decode_header(bytes, *key, m_limits, m_signatures);
}

Error FolderTrust::refusal(const FileInfo& info, const Path& path) const
{
    const bool is_group = m_sharing == Sharing::group;
    const std::string what = fmt::format("cache {} {}", kind_of(info), path.string());
    const auto refused = [&](const std::string& is, const std::string& cure) {
        return Error{ErrorCode::permission_denied,
                     fmt::format("{} {}: {}", what, is, m_may_be_changed ? cure : propose_below(m_root))};
    };
    if ((info.mode & k_others_write) != 0)
        return refused(fmt::format("may be written by any user (mode {:04o}), whose code would run as you", info.mode),
                       fmt::format("delete it; or, if you trust what is in it, `chmod {} {}`",
                                   is_group ? "o-w" : "go-w", path.string()));
    if (is_group && std::ranges::find(m_groups, info.group) == m_groups.end())
        return refused(
            fmt::format("is of group {}, expected one of this process's groups", info.group),
            fmt::format("`chgrp {} {}`, or run as a member of group {}", ::getegid(), path.string(), info.group));
    if (is_group && info.group != m_group)
        return refused(fmt::format("is of group {}, expected the cache folder's group {}", info.group, m_group),
                       fmt::format("`chgrp {} {}`", m_group, path.string()));
    if (!is_trusted_owner(info.owner))
        return Error{
            ErrorCode::permission_denied,
            fmt::format("{} belongs to user {}, expected {}: {}name user {} as trusted (trusted_owners, "
                        "WARMGRAPH_TRUSTED_OWNERS), share the cache with your group (share_with_group), or set "
                        "WARMGRAPH_CACHE_DIR or cache_dir to a folder of your own",
                        what, info.owner, m_user,
                        m_may_be_changed ? fmt::format("`chown {} {}`; or ", m_user, path.string()) : "", info.owner)};
    return refused(
        fmt::format("may be written by group {} (mode {:04o}), whose members could put code there that runs as you",
                    info.group, info.mode),
        fmt::format("`chmod g-w {}`, or share the cache with that group (share_with_group)", path.string()));
}

Result<void> FolderTrust::admits_folder(const FileInfo& folder, const Path& path) const
{
    // When signatures are accepted, a foreign owner's folder may be entered, too: each of its files needs a signature.
    const bool is_known = is_trusted_owner(folder.owner) || takes_signatures();
    if (is_known && (folder.mode & (k_group_writes | k_others_write)) == 0) return {};
    if (is_shared(folder)) return {};
    return std::unexpected(refusal(folder, path));
}

Result<void> FolderTrust::admits_file(const FileInfo& file, const Path& path, const Name* name, ByteView bytes) const
{
    const bool only_owner_writes = (file.mode & (k_group_writes | k_others_write)) == 0;
    if (is_trusted_owner(file.owner) && only_owner_writes) return {};
    if (is_shared(file)) return {};
    if (only_owner_writes && name != nullptr && is_covered(*name, bytes)) return {};
    return std::unexpected(refusal(file, path));
}

Result<void> FolderTrust::admits_writing(const FileInfo& root, const Path& path) const
{
    if (root.owner == m_user || is_shared(root)) return {};
    return fail(ErrorCode::permission_denied,
                "cache folder {} belongs to user {}, expected {}, so it is not written: set WARMGRAPH_CACHE_DIR or "
                "cache_dir to a folder of your own, or share it with your group (share_with_group)",
                path.string(), root.owner, m_user);
}

} // namespace warmgraph::store
