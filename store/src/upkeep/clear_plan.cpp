#include "upkeep/clear_plan.hpp"

#include <algorithm>
#include <set>

#include "tiers/local/own_names.hpp"
#include "upkeep/inventory.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

bool fits(const FunctionKey& key, const ClearRequest& request)
{
    return (!request.model || *request.model == key.model_info ||
            *request.model == cachefmt::model_of(key.model_info)) &&
           (!request.rank || *request.rank == key.rank) && (!request.function || *request.function == key.function);
}

Result<Removal::Amount> add_entries(const Disk& disk, const FunctionKey& function, std::set<EntryKey>& leaving)
{
    Removal::Amount amount;
    const auto digests = disk.entries_of(function);
    if (!digests) return std::unexpected(digests.error());
    for (const Digest& digest : *digests) {
        const auto info = disk.files.info(disk.layout.entry({function, digest}));
        if (!info) return std::unexpected(info.error());
        if (!*info) continue; // removed meanwhile
        ++amount.files;
        amount.bytes += (*info)->size;
        leaving.insert({function, digest});
    }
    return amount;
}

/// Adds the functions of the pairs' other entries: forward and backward of a pair may belong to different functions.
Result<void> add_others_of_pairs(LocalTier& tier, const std::vector<FunctionKey>& others,
                                 std::vector<FunctionKey>& chosen)
{
    std::set<Pairs::Id> incomplete;
    for (const FunctionKey& function : chosen) {
        const auto entries = entries_with_recordings(tier, function);
        if (!entries) return std::unexpected(entries.error());
        const Pairs pairs{*entries};
        for (const InventoryEntry& entry : *entries)
            if (!pairs.is_whole(entry)) incomplete.insert(Pairs::id_of(entry));
    }
    if (incomplete.empty()) return {};
    for (const FunctionKey& function : others) {
        const auto entries = entries_with_recordings(tier, function);
        if (!entries) return std::unexpected(entries.error());
        if (std::ranges::any_of(*entries, [&](const InventoryEntry& entry) {
                return entry.recording && incomplete.contains(Pairs::id_of(entry));
            }))
            chosen.push_back(function);
    }
    return {};
}

Result<Removal::Amount> count_quarantined(const Disk& disk)
{
    Removal::Amount amount;
    const auto files = quarantined_files(disk);
    if (!files) return std::unexpected(files.error());
    for (const auto& [name, info] : *files) {
        if (!is_reason(name)) ++amount.files;
        amount.bytes += info.size;
    }
    return amount;
}

Result<Removal::Amount> count_artifacts(const Disk& disk, ArtifactKind kind)
{
    Removal::Amount amount;
    const auto names = disk.artifact_names(kind);
    if (!names) return std::unexpected(names.error());
    for (const Name& name : *names) {
        const auto info = disk.files.info(disk.layout.path(name));
        if (!info) return std::unexpected(info.error());
        if (*info) amount += {.files = 1, .bytes = (*info)->size}; // no info: the file was removed meanwhile
    }
    return amount;
}

} // namespace

Result<std::vector<std::pair<std::string, FileInfo>>> quarantined_files(const Disk& disk)
{
    std::vector<std::pair<std::string, FileInfo>> files;
    const auto items = disk.files.list(disk.layout.quarantine());
    if (!items) return std::unexpected(items.error());
    for (const DirectoryItem& item : *items) {
        if (!is_quarantined(item.name)) continue;
        const auto info = disk.files.info(disk.layout.quarantine() / item.name);
        if (!info) return std::unexpected(info.error());
        if (*info) files.emplace_back(item.name, **info);
    }
    return files;
}

Result<std::vector<FunctionKey>> functions_to_clear(LocalTier& tier, const ClearRequest& request)
{
    if (!request.kinds.contains(ArtifactKind::entries)) return std::vector<FunctionKey>{};
    auto found = tier.disk().list_functions();
    if (!found) return std::unexpected(found.error());
    if (found->left_out) log().warn("some folders cannot be read: {}", found->left_out->message);
    const auto others = std::ranges::stable_partition(found->keys, [&](const auto& key) { return fits(key, request); });
    std::vector<FunctionKey> chosen(found->keys.begin(), others.begin());
    if (request.function)
        if (auto ok = add_others_of_pairs(tier, {others.begin(), others.end()}, chosen); !ok)
            return std::unexpected(ok.error());
    return chosen;
}

Result<Removal> plan_clear(LocalTier& tier, const ClearRequest& request)
{
    const Disk& disk = tier.disk();
    const auto functions = functions_to_clear(tier, request);
    if (!functions) return std::unexpected(functions.error());
    Removal removal{.functions = functions->size()};
    std::set<EntryKey> leaving;
    for (const FunctionKey& function : *functions) {
        const auto amount = add_entries(disk, function, leaving);
        if (!amount) return std::unexpected(amount.error());
        removal.of(ArtifactKind::entries) += *amount;
    }
    if (clears_images(request, functions->size())) {
        const auto images = unused_images(tier, image_grace(request), leaving);
        if (!images) return std::unexpected(images.error());
        for (const auto& [digest, size] : *images) removal.of(ArtifactKind::images) += {.files = 1, .bytes = size};
    }
    if (request.quarantine) {
        const auto amount = count_quarantined(disk);
        if (!amount) return std::unexpected(amount.error());
        removal.quarantined = *amount;
    }
    for (const ArtifactKind kind : kinds_with_files()) {
        if (!request.kinds.contains(kind)) continue;
        const auto amount = count_artifacts(disk, kind);
        if (!amount) return std::unexpected(amount.error());
        removal.of(kind) = *amount;
    }
    return removal;
}

} // namespace warmgraph::store
