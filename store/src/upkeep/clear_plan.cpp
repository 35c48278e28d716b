#include "upkeep/clear_plan.hpp"

#include "tiers/local/own_names.hpp"
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
        if (!*info) continue; // gone meanwhile
        ++amount.files;
        amount.bytes += (*info)->size;
        leaving.insert({function, digest});
    }
    return amount;
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
        if (*info) amount += {.files = 1, .bytes = (*info)->size}; // else gone meanwhile
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

Result<std::vector<FunctionKey>> functions_to_clear(const Disk& disk, const ClearRequest& request)
{
    if (!request.kinds.contains(ArtifactKind::entries)) return std::vector<FunctionKey>{};
    auto found = disk.list_functions();
    if (!found) return std::unexpected(found.error());
    if (found->left_out) log().warn("not all could be looked at: {}", found->left_out->message);
    std::erase_if(found->keys, [&](const FunctionKey& key) { return !fits(key, request); });
    return std::move(found->keys);
}

Result<Removal> plan_clear(LocalTier& tier, const ClearRequest& request)
{
    const Disk& disk = tier.disk();
    const auto functions = functions_to_clear(disk, request);
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
