#include "tiers/local/disk.hpp"

#include <algorithm>

#include "tiers/local/folder_tag.hpp"
#include "tiers/local/own_names.hpp"

namespace warmgraph::store {
namespace {

/// Walks the folders of model_info, rank and function. Leaves out, and reports, a folder that this user may not list.
class FunctionWalk {
public:
    FunctionWalk(const Disk& disk, const TimeLimit& limit) : m_disk(disk), m_limit(limit) {}

    Result<Disk::Functions> run()
    {
        if (auto ok = walk({}); !ok) return std::unexpected(ok.error());
        std::ranges::sort(m_found.keys);
        return std::move(m_found);
    }

private:
    /// nullopt: the folder may not be listed.
    Result<std::optional<std::vector<DirectoryItem>>> list(const Path& folder)
    {
        auto items = m_disk.files.list(folder);
        if (items) return std::move(*items);
        if (items.error().code != ErrorCode::permission_denied || folder.empty()) return std::unexpected(items.error());
        if (!m_found.left_out) m_found.left_out = items.error();
        return std::nullopt;
    }
    /// Walks one folder. `names` are the names of the folders from the root to this folder.
    Result<void> walk(const std::vector<std::string>& names)
    {
        Path folder;
        for (const std::string& name : names) folder /= name;
        const auto items = list(folder);
        if (!items) return std::unexpected(items.error());
        if (!*items) return {};
        if (names.size() == k_key_levels) {
            if (!(*items)->empty()) m_found.keys.push_back({names[0], names[1], names[2]});
            return {};
        }
        for (const DirectoryItem& item : **items) {
            if (item.type != FileType::directory || !is_key_folder(names.size(), item.name)) continue;
            if (!m_found.is_whole || m_limit.is_over(m_disk.clock)) {
                m_found.is_whole = false;
                return {};
            }
            std::vector<std::string> below = names;
            below.push_back(item.name);
            if (auto ok = walk(below); !ok) return ok;
        }
        return {};
    }

    const Disk& m_disk;
    const TimeLimit& m_limit;
    Disk::Functions m_found;
};

std::vector<Digest> entry_digests(const std::vector<DirectoryItem>& items)
{
    std::vector<Digest> digests;
    for (const DirectoryItem& item : items)
        if (const auto digest = Layout::entry_digest(item.name)) digests.push_back(*digest);
    return digests;
}

} // namespace

Result<void> Disk::require_writable(std::string_view doing) const
{
    if (writable()) return {};
    return fail(ErrorCode::permission_denied, "cannot {} in {}: the cache was opened read-only", doing,
                layout.root().string());
}

Result<void> Disk::may_make(std::string_view doing) const
{
    if (auto ok = require_writable(doing); !ok) return ok;
    if (auto ok = ensure_tag(files, layout.root(), modes); !ok) return within(doing, ok.error());
    return {};
}

Result<void> Disk::may_remove(std::string_view doing) const
{
    if (auto ok = require_writable(doing); !ok) return ok;
    if (auto ok = refuse_foreign(files, layout.root()); !ok) return within(doing, ok.error());
    return {};
}

Result<std::optional<StampedBytes>> Disk::read(const Path& path, ReadLimit extent, const Name* name) const
{
    return read_in(files, path, path, extent, name);
}

Result<std::optional<StampedBytes>> Disk::read_in(FileSystem& folder, const Path& path, const Path& shown,
                                                  ReadLimit extent, const Name* name) const
{
    const auto info = folder.info(path);
    if (!info) return std::unexpected(info.error());
    if (!*info) return std::nullopt;
    StampedBytes found{stamp_of(**info), Bytes{}};
    if ((*info)->type != FileType::regular) {
        found.bytes = fail(ErrorCode::corrupt, "it is a folder, link or pipe, expected a regular file");
        return found;
    }
    if (extent.whole && (*info)->size > extent.bytes) {
        found.bytes = fail(ErrorCode::corrupt, "file has {} bytes, at most {} are read", (*info)->size, extent.bytes);
        return found;
    }
    auto content = folder.read(path, end_of(extent));
    if (!content) return std::unexpected(content.error());
    if (!*content) return std::nullopt;
    if (auto ok = trust.admits_file((*content)->info, layout.root() / shown, name, (*content)->bytes); !ok)
        return std::unexpected(ok.error());
    found.bytes = std::move((*content)->bytes);
    cut(*found.bytes, extent);
    return found;
}

Result<std::vector<StampedEntry>> Disk::read_entries(const FunctionKey& function, ReadLimit extent) const
{
    std::vector<StampedEntry> entries;
    const Path path = layout.function(function);
    const auto folder = files.open_folder(path, {});
    if (!folder && folder.error().code == ErrorCode::not_found) return entries;
    if (!folder) return std::unexpected(folder.error());
    const auto items = (*folder)->list("");
    if (!items) return std::unexpected(items.error());
    for (const Digest& digest : entry_digests(*items)) {
        const Name name = EntryKey{function, digest};
        const std::string file = Layout::entry_name(digest);
        auto found = read_in(**folder, file, path / file, extent, &name);
        if (!found)
            entries.push_back({{function, digest}, std::unexpected(found.error())});
        else if (*found) // no object: the entry was evicted meanwhile
            entries.push_back({{function, digest}, std::move(**found)});
    }
    return entries;
}

Result<std::vector<Digest>> Disk::entries_of(const FunctionKey& function) const
{
    const auto items = files.list(layout.function(function));
    if (!items) return std::unexpected(items.error());
    return entry_digests(*items);
}

Result<std::vector<Name>> Disk::entry_names(const FunctionKey& function) const
{
    const auto digests = entries_of(function);
    if (!digests) return std::unexpected(digests.error());
    std::vector<Name> names;
    for (const Digest& digest : *digests) names.emplace_back(EntryKey{function, digest});
    return names;
}

Result<Disk::Functions> Disk::list_functions(const TimeLimit& limit) const { return FunctionWalk(*this, limit).run(); }

Result<std::vector<FunctionKey>> Disk::functions() const
{
    auto found = list_functions();
    if (!found) return std::unexpected(found.error());
    if (found->left_out) return std::unexpected(*found->left_out);
    return std::move(found->keys);
}

namespace {

/// The names of all files in a folder's shards that `name` accepts.
template <class NameOf>
Result<std::vector<Name>> names_in_shards(FileSystem& files, const Path& folder, const NameOf& name)
{
    std::vector<Name> names;
    const auto shards = files.list(folder);
    if (!shards) return std::unexpected(shards.error());
    for (const DirectoryItem& shard : *shards) {
        if (shard.type != FileType::directory) continue;
        const auto items = files.list(folder / shard.name);
        if (!items) return std::unexpected(items.error());
        for (const DirectoryItem& item : *items)
            if (const std::optional<Name> known = name(shard.name, item.name)) names.push_back(*known);
    }
    return names;
}

} // namespace

Result<std::vector<Name>> Disk::image_names() const
{
    return names_in_shards(files, layout.images(), [](std::string_view shard, std::string_view file) {
        const auto digest = Layout::image_digest(shard, file);
        return digest ? std::optional<Name>(ImageName{*digest}) : std::nullopt;
    });
}

Result<std::vector<Name>> Disk::artifact_names(ArtifactKind kind) const
{
    const Path top = Layout::artifacts(kind);
    return names_in_shards(files, top, [&top](std::string_view shard, std::string_view file) {
        const auto name = Layout::artifact_name(top, shard, file);
        return name ? std::optional<Name>(*name) : std::nullopt;
    });
}

Result<std::vector<std::pair<Digest, std::uint64_t>>> Disk::images() const
{
    const auto names = image_names();
    if (!names) return std::unexpected(names.error());
    std::vector<std::pair<Digest, std::uint64_t>> found;
    for (const Name& name : *names) {
        const auto info = files.info(layout.path(name));
        if (!info) return std::unexpected(info.error());
        if (*info) found.emplace_back(std::get<ImageName>(name).digest, (*info)->size);
    }
    return found;
}

} // namespace warmgraph::store
