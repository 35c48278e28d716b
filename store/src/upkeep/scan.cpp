#include "upkeep/scan.hpp"

#include <algorithm>

#include "reading.hpp"
#include "tiers/local/folder_tag.hpp"
#include "tiers/local/load_marks.hpp"
#include "tiers/local/own_names.hpp"
#include "tiers/local/temporary.hpp"
#include "upkeep/prune.hpp"
#include "usage/miss_file.hpp"
#include "usage/usage_file.hpp"
#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph::store {
namespace {

/// True for files of the library beside the top folders.
bool is_of_root(const DirectoryItem& item)
{
    if (item.type != FileType::regular) return item.name == k_tag_file;
    return item.name == k_tag_file || item.name == k_leases_file || item.name == k_prune_lock;
}

} // namespace

Result<void> Scan::run()
{
    if (auto ok = scan_root(); !ok) return ok;
    if (auto ok = scan_images(); !ok) return ok;
    for (const ArtifactKind kind : kinds_with_files())
        if (auto ok = scan_artifacts(kind); !ok) return ok;
    scan_missing_images();
    scan_lone_parts();
    std::ranges::stable_sort(m_findings, {}, [](const Finding& finding) { return finding.damage.path.native(); });
    return {};
}

Result<void> Scan::scan_root()
{
    const Path root; // the opened folder
    const auto owned = ownership(m_disk.files, m_disk.layout.root());
    if (!owned) return std::unexpected(owned.error());
    if (*owned == Ownership::foreign)
        add(root / k_tag_file,
            {ErrorCode::not_found, "the folder has no CACHEDIR.TAG of warmgraph: nothing in it is changed"},
            Finding::Cure::leave);
    if (*owned == Ownership::untagged)
        add(root / k_tag_file,
            {ErrorCode::not_found, "the folder has lost its CACHEDIR.TAG: the next recording writes it again"},
            Finding::Cure::leave);
    const auto items = m_disk.files.list(root);
    if (!items) return std::unexpected(items.error());
    for (const DirectoryItem& item : *items) {
        const bool is_folder = item.type == FileType::directory;
        const bool is_reserved =
            std::ranges::find(cachefmt::k_reserved_folders, item.name) != cachefmt::k_reserved_folders.end();
        if ((is_folder && is_reserved) || is_of_root(item)) continue;
        if (is_folder && is_key_folder(0, item.name)) {
            if (auto ok = scan_keys({item.name}); !ok) return ok;
        } else {
            scan_other(root, item);
        }
    }
    return {};
}

Result<void> Scan::scan_keys(const std::vector<std::string>& names)
{
    if (names.size() == k_key_levels) return scan_function({names[0], names[1], names[2]});
    Path folder;
    for (const std::string& name : names) folder /= name;
    const auto items = m_disk.files.list(folder);
    if (!items) return skip(folder, items.error());
    for (const DirectoryItem& item : *items) {
        auto below = names;
        below.push_back(item.name);
        if (item.type == FileType::directory && is_key_folder(names.size(), item.name)) {
            if (auto ok = scan_keys(below); !ok) return ok;
        } else {
            scan_other(folder, item);
        }
    }
    return {};
}

Result<void> Scan::scan_function(const FunctionKey& function)
{
    const Path folder = m_disk.layout.function(function);
    const auto items = m_disk.files.list(folder);
    if (!items) return skip(folder, items.error());
    for (const DirectoryItem& item : *items) {
        if (const auto digest = Layout::entry_digest(item.name)) {
            scan_entry({function, *digest});
        } else if (item.name == k_usage_file) {
            scan_usage(folder / item.name);
        } else if (item.name == k_miss_file) {
            scan_misses(folder / item.name);
        } else if (is_record_lock(item.name) && item.type == FileType::regular) {
            m_record_locks.push_back(folder / item.name);
        } else if (is_load_mark(item.name) && item.type == FileType::regular) {
            continue; // a load in progress, or a death that counts
        } else if (item.name != k_usage_lock || item.type != FileType::regular) {
            scan_other(folder, item);
        }
    }
    for (const std::string& name : spent_load_marks(m_disk, folder, *items))
        add(folder / name,
            {ErrorCode::io_failed, "left behind by a process that died during a load: repair removes it"},
            Finding::Cure::remove);
    return {};
}

template <class ScanFile>
Result<void> Scan::scan_shards(const Path& top, const ScanFile& scan_file)
{
    const auto shards = m_disk.files.list(top);
    if (!shards) return skip(top, shards.error());
    for (const DirectoryItem& shard : *shards) {
        const Path folder = top / shard.name;
        if (shard.type != FileType::directory || shard.name.size() != 2) {
            if (!scan_beside_shards(top, shard)) scan_other(top, shard);
            continue;
        }
        const auto items = m_disk.files.list(folder);
        if (!items) {
            if (auto ok = skip(folder, items.error()); !ok) return ok;
            continue;
        }
        for (const DirectoryItem& item : *items)
            if (!scan_file(shard.name, item)) scan_other(folder, item);
    }
    return {};
}

Result<void> Scan::scan_images()
{
    return scan_shards(m_disk.layout.images(), [this](const std::string& shard, const DirectoryItem& item) {
        const auto digest = Layout::image_digest(shard, item.name);
        if (digest) scan_image(*digest);
        return digest.has_value();
    });
}

bool Scan::scan_beside_shards(const Path& top, const DirectoryItem& item)
{
    if (top == m_disk.layout.images() || item.type != FileType::regular) return false;
    const bool has_misses = top == Layout::artifacts(ArtifactKind::compiled) && item.name == k_miss_file;
    if (has_misses) scan_misses(top / item.name);
    if (item.name == k_usage_file) scan_usage(top / item.name);
    return has_misses || item.name == k_usage_file || item.name == k_usage_lock;
}

Result<void> Scan::scan_artifacts(ArtifactKind kind)
{
    const Path top = Layout::artifacts(kind);
    return scan_shards(top, [this, &top](const std::string& shard, const DirectoryItem& item) {
        const bool is_lock = item.type == FileType::regular && is_record_lock(item.name);
        if (is_lock) m_record_locks.push_back(top / shard / item.name);
        const auto name = Layout::artifact_name(top, shard, item.name);
        if (name && m_verifier) scan_artifact(*name);
        return is_lock || name;
    });
}

Result<void> Scan::skip(const Path& folder, const Error& error)
{
    if (error.code != ErrorCode::permission_denied) return std::unexpected(error);
    add(folder, error, Finding::Cure::leave);
    return {};
}

void Scan::scan_entry(const EntryKey& key)
{
    const Path path = m_disk.layout.entry(key);
    const auto entry = read_entry(m_tier, key, caps_of(m_disk.options), LookupBy::by_name);
    if (!entry) return add(path, entry.error(), Finding::Cure::leave);
    if (!*entry) return; // evicted meanwhile
    if ((*entry)->content) {
        const auto& [header, graph] = *(*entry)->content;
        if (const auto ok = cachefmt::check_not_joined(header); !ok)
            return add(path, ok.error(), Finding::Cure::set_aside, (*entry)->stamp);
        for (const Digest& blob : cachefmt::blobs_of(graph)) m_named.emplace_back(key, blob);
        if (is_part(header)) m_parts.push_back({key, (*entry)->stamp, {}, header.recording});
    } else if ((*entry)->fate == Fate::refuse) {
        add(path, (*entry)->content.error(), Finding::Cure::set_aside, (*entry)->stamp);
    }
}

void Scan::scan_image(const Digest& digest)
{
    const Path path = m_disk.layout.image(digest);
    const auto image = read_image(m_tier, digest, m_disk.options.image_bytes);
    if (!image) return add(path, image.error(), Finding::Cure::leave);
    if (*image && !(*image)->content) add(path, (*image)->content.error(), Finding::Cure::set_aside, (*image)->stamp);
}

void Scan::scan_artifact(const ArtifactName& artifact)
{
    const Name name = artifact;
    const Path path = Layout::artifact(artifact);
    const auto found = m_disk.read(path, {row_of(artifact.kind).most_bytes}, &name);
    if (!found) return add(path, found.error(), Finding::Cure::leave);
    if (!*found) return; // removed meanwhile
    const auto& [stamp, bytes] = **found;
    const auto whole = bytes ? m_verifier(artifact, *bytes) : Result<void>(std::unexpected(bytes.error()));
    if (!whole) add(path, whole.error(), Finding::Cure::set_aside, stamp);
}

void Scan::scan_usage(const Path& path)
{
    const auto file = m_disk.read(path, {k_usage_cap});
    if (!file) return add(path, file.error(), Finding::Cure::leave);
    if (!*file || ((*file)->bytes && parse_usage(*(*file)->bytes))) return;
    add(path, {ErrorCode::corrupt, "usage counters do not parse: they start again at 0 with the next use"},
        Finding::Cure::remove);
}

void Scan::scan_misses(const Path& path)
{
    const auto file = m_disk.read(path, {k_miss_file_cap});
    if (!file) return add(path, file.error(), Finding::Cure::leave);
    if (!*file || ((*file)->bytes && parse_misses(*(*file)->bytes))) return;
    add(path, {ErrorCode::corrupt, "the list of misses does not parse: it starts again with the next miss"},
        Finding::Cure::remove);
}

void Scan::scan_missing_images()
{
    for (const auto& [key, digest] : m_named) {
        const Path path = m_disk.layout.entry(key);
        const auto image = m_disk.files.info(m_disk.layout.image(digest));
        const auto entry = m_disk.files.info(path); // the image and the entry may have been cleared meanwhile
        if (!image || *image || !entry || !*entry) continue;
        add(path,
            {ErrorCode::not_found,
             fmt::format("image {} is missing: the function is recorded again at its next call", to_hex(digest))},
            Finding::Cure::set_aside, stamp_of(**entry));
    }
}

void Scan::scan_lone_parts()
{
    const auto began = m_disk.clock.wall() - k_prune_grace; // younger pairs may still be completed
    const Pairs pairs{m_parts};
    for (const InventoryEntry& entry : m_parts)
        if (!pairs.is_whole(entry) && entry.stamp.used < began)
            add(m_disk.layout.entry(entry.key),
                {ErrorCode::not_found,
                 fmt::format("the {} of its pair is missing, and it is not used without it",
                             entry.recording->part == cachefmt::Part::forward ? "backward" : "forward")},
                Finding::Cure::set_aside, entry.stamp);
}

void Scan::scan_other(const Path& folder, const DirectoryItem& item)
{
    const Path path = folder / item.name;
    if (item.type != FileType::regular || !is_temporary(item.name)) {
        return add(path,
                   {ErrorCode::invalid_argument, "warmgraph does not write files of this name: move it elsewhere"},
                   Finding::Cure::leave);
    }
    const auto info = m_disk.files.info(path);
    if (!info) return add(path, info.error(), Finding::Cure::leave);
    if (!*info || !is_abandoned(item.name, (*info)->modified, m_disk.clock.wall())) return;
    // The writer may have removed the file and ended between the two checks.
    if (const auto still = m_disk.files.info(path); still && !*still) return;
    add(path, {ErrorCode::io_failed, "left over by a writer that died: repair removes it"}, Finding::Cure::remove);
}

void Scan::add(const Path& path, Error error, Finding::Cure cure, const Stamp& stamp)
{
    m_findings.push_back({{path, std::move(error)}, stamp, cure});
}

} // namespace warmgraph::store
