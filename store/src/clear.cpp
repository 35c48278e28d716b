#include "disk.hpp"
#include "image_sweep.hpp"
#include "temporary.hpp"
#include "warmgraph/store/names.hpp"

namespace warmgraph::store {
namespace {

bool matches(const FunctionKey& key, const std::optional<std::string>& model,
             const std::optional<std::string>& function)
{
    return (!model || *model == key.model_info || *model == model_of(key.model_info)) &&
           (!function || *function == key.function);
}

/// Lock files that nobody holds; a recording that goes on keeps its own.
void remove_free_locks(const Disk& disk, const Path& folder)
{
    const auto items = disk.files.list(folder);
    if (!items) return;
    for (const DirectoryItem& item : *items) {
        if (item.type != FileType::regular || (!item.name.starts_with(k_lock_prefix) && item.name != k_usage_lock))
            continue;
        remove_free_lock(disk.files, disk.modes, folder / item.name);
    }
}

Result<std::uint64_t> clear_function(const Disk& disk, const FunctionKey& key)
{
    const auto digests = disk.entries_of(key);
    if (!digests) return std::unexpected(digests.error());
    std::uint64_t count = 0;
    for (const Digest& digest : *digests) {
        if (auto removed = disk.files.remove(disk.layout.entry({key, digest})); !removed)
            return std::unexpected(removed.error());
        ++count;
    }
    const Path folder = disk.layout.function(key);
    if (auto removed = disk.files.remove(folder / k_usage_file); !removed) return std::unexpected(removed.error());
    remove_abandoned(disk.files, disk.clock, folder);
    remove_free_locks(disk, folder);
    // Folders that still hold something (a recording that goes on, other functions, foreign files) refuse to go.
    for (const Path& empty : {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
        if (!disk.files.remove(empty)) break;
    }
    return count;
}

} // namespace

Result<std::uint64_t> LocalStore::clear(const std::optional<std::string>& model,
                                        const std::optional<std::string>& function)
{
    const Disk& disk = m_impl->disk;
    if (auto ok = disk.require_writable("clear"); !ok) return std::unexpected(ok.error());
    const auto keys = disk.functions();
    if (!keys) return std::unexpected(keys.error());
    std::uint64_t removed = 0;
    for (const FunctionKey& key : *keys) {
        if (!matches(key, model, function)) continue;
        const auto count = clear_function(disk, key);
        if (!count) return count;
        removed += *count;
    }
    if (auto swept = sweep_images(disk, std::chrono::seconds(0)); !swept) return swept;
    return removed;
}

} // namespace warmgraph::store
