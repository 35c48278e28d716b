#include "upkeep/clear.hpp"

#include "tiers/local/load_marks.hpp"
#include "tiers/local/own_names.hpp"
#include "tiers/local/temporary.hpp"
#include "upkeep/clear_plan.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// Removes lock files that no process holds. Returns their number.
std::uint64_t remove_free_locks(const Disk& disk, const Path& folder)
{
    const auto items = disk.files.list(folder);
    if (!items) return 0;
    std::uint64_t count = 0;
    for (const DirectoryItem& item : *items) {
        if (item.type != FileType::regular || (!is_record_lock(item.name) && item.name != k_usage_lock)) continue;
        count += remove_free_lock(disk.files, disk.modes, folder / item.name) ? 1 : 0;
    }
    return count;
}

/// Removes one file and returns its size; nullopt when it was already gone.
Result<std::optional<std::uint64_t>> remove_file(const Disk& disk, const Path& path)
{
    const auto info = disk.files.info(path);
    if (!info) return std::unexpected(info.error());
    if (!*info) return std::nullopt;
    if (auto removed = disk.files.remove(path); !removed) return std::unexpected(removed.error());
    return (*info)->size;
}

Result<Removal::Amount> remove_entries(const Disk& disk, const FunctionKey& key)
{
    const auto digests = disk.entries_of(key);
    if (!digests) return std::unexpected(digests.error());
    Removal::Amount removed;
    for (const Digest& digest : *digests) {
        const auto size = remove_file(disk, disk.layout.entry({key, digest}));
        if (!size) return std::unexpected(size.error());
        removed.files += *size ? 1 : 0;
        removed.bytes += size->value_or(0);
    }
    return removed;
}

Result<Removal::Amount> clear_function(const Disk& disk, const FunctionKey& key)
{
    const auto removed = remove_entries(disk, key);
    if (!removed) return removed;
    const Path folder = disk.layout.function(key);
    std::uint64_t others = 0;
    for (const std::string_view name : {k_usage_file, k_miss_file}) {
        const auto advisory = remove_file(disk, folder / name);
        if (!advisory) return std::unexpected(advisory.error());
        others += *advisory ? 1 : 0;
    }
    others += remove_abandoned(disk.files, disk.clock, folder);
    others += remove_free_locks(disk, folder);
    others += remove_dead_load_marks(disk, folder);
    // A folder that was empty before may be foreign, so it stays. A folder that still holds something (a recording,
    // other functions, foreign files) cannot be removed.
    if (removed->files + others == 0) return removed;
    for (const Path& empty : {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
        if (!disk.files.remove(empty)) break;
    }
    return removed;
}

Result<Removal::Amount> remove_quarantined(const Disk& disk)
{
    const auto files = quarantined_files(disk);
    if (!files) return std::unexpected(files.error());
    Removal::Amount removed;
    for (const auto& [name, info] : *files) {
        if (const auto gone = disk.files.remove(disk.layout.quarantine() / name); !gone) {
            if (info.type != FileType::directory) return std::unexpected(gone.error());
            // A folder in place of an entry: the library did not make its contents.
            log().warn("{} cannot be removed from quarantine: {}", name, gone.error().message);
            continue;
        }
        if (!is_reason(name)) ++removed.files;
        removed.bytes += info.size;
    }
    return removed;
}

Result<Removal::Amount> remove_artifacts(const Disk& disk, ArtifactKind kind)
{
    const Path top = Layout::artifacts(kind);
    const auto names = disk.artifact_names(kind);
    if (!names) return std::unexpected(names.error());
    Removal::Amount removed;
    for (const Name& name : *names) {
        const auto size = remove_file(disk, disk.layout.path(name));
        if (!size) return std::unexpected(size.error());
        removed.files += *size ? 1 : 0;
        removed.bytes += size->value_or(0);
    }
    for (const std::string_view advisory : {k_usage_file, k_miss_file})
        static_cast<void>(remove_file(disk, top / advisory));
    remove_free_locks(disk, top);
    return removed;
}

} // namespace

Result<Removal> clear(LocalTier& tier, const ClearRequest& request)
{
    const Disk& disk = tier.disk();
    const auto functions = functions_to_clear(tier, request);
    if (!functions) return std::unexpected(functions.error());
    Removal removed{.functions = functions->size()};
    for (const FunctionKey& key : *functions) {
        const auto amount = clear_function(disk, key);
        if (!amount) return std::unexpected(amount.error());
        removed.of(ArtifactKind::entries) += *amount;
    }
    if (clears_images(request, functions->size())) {
        const auto amount = sweep_images(tier, image_grace(request));
        if (!amount && !request.kinds.contains(ArtifactKind::entries)) return std::unexpected(amount.error());
        // The files above are removed, so this is only logged; the next clear sweeps the images.
        if (!amount) log().warn("images are kept: {}", amount.error().message);
        removed.of(ArtifactKind::images) = amount.value_or(Removal::Amount{});
    }
    if (request.quarantine) {
        const auto amount = remove_quarantined(disk);
        if (!amount) return std::unexpected(amount.error());
        removed.quarantined = *amount;
    }
    for (const ArtifactKind kind : kinds_with_files()) {
        if (!request.kinds.contains(kind)) continue;
        const auto amount = remove_artifacts(disk, kind);
        if (!amount) return std::unexpected(amount.error());
        removed.of(kind) = *amount;
    }
    return removed;
}

} // namespace warmgraph::store
