#include "upkeep/image_sweep.hpp"

#include "reading.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph::store {
namespace {

/// Digests that entries name; nullopt when some entries cannot be read here.
Result<std::optional<std::set<Digest>>> images_in_use(LocalTier& tier, const std::set<EntryKey>& leaving)
{
    const Disk& disk = tier.disk();
    std::set<Digest> used;
    const auto functions = disk.list_functions();
    if (!functions) return std::unexpected(functions.error());
    if (functions->left_out) return std::nullopt;
    for (const FunctionKey& function : functions->keys) {
        const auto digests = disk.entries_of(function);
        if (!digests) return std::unexpected(digests.error());
        for (const Digest& digest : *digests) {
            if (leaving.contains({function, digest})) continue;
            const auto entry = read_entry(tier, {function, digest}, caps_of(disk.options), LookupBy::by_name);
            // Other users may use this entry and its images.
            if (!entry && entry.error().code == ErrorCode::permission_denied) return std::nullopt;
            if (!entry) return std::unexpected(entry.error());
            if (!*entry) continue;
            if ((*entry)->content) {
                for (const Digest& blob : cachefmt::blobs_of((*entry)->content->graph)) used.insert(blob);
            } else if ((*entry)->fate == Fate::leave) {
                return std::nullopt;
            }
        }
    }
    return used;
}

/// The image's size, if it exists and was published more than `grace` ago.
Result<std::optional<std::uint64_t>> size_when_old(const Disk& disk, const Digest& digest, std::chrono::seconds grace)
{
    const auto info = disk.files.info(disk.layout.image(digest));
    if (!info) return std::unexpected(info.error());
    if (!*info || (grace.count() > 0 && disk.clock.wall() - (*info)->modified < grace)) return std::nullopt;
    return (*info)->size;
}

} // namespace

Result<std::vector<std::pair<Digest, std::uint64_t>>> unused_images(LocalTier& tier, std::chrono::seconds grace,
                                                                    const std::set<EntryKey>& leaving)
{
    std::vector<std::pair<Digest, std::uint64_t>> unused;
    const auto used = images_in_use(tier, leaving);
    if (!used) return std::unexpected(used.error());
    if (!*used) {
        log().info("unused images stay: entries that cannot be read here may name them");
        return unused;
    }
    const Disk& disk = tier.disk();
    const auto images = disk.images();
    if (!images) return std::unexpected(images.error());
    for (const auto& [digest, listed_size] : *images) {
        if ((*used)->contains(digest)) continue;
        const auto size = size_when_old(disk, digest, grace);
        if (!size) return std::unexpected(size.error());
        if (*size) unused.emplace_back(digest, **size);
    }
    return unused;
}

Result<Removal::Amount> sweep_images(LocalTier& tier, std::chrono::seconds grace)
{
    const auto unused = unused_images(tier, grace);
    if (!unused) return std::unexpected(unused.error());
    const Disk& disk = tier.disk();
    Removal::Amount removed;
    for (const auto& [digest, listed_size] : *unused) {
        // The image is checked again right before its removal: a publisher that finds the image present touches it.
        const auto size = size_when_old(disk, digest, grace);
        if (!size) return std::unexpected(size.error());
        if (!*size) continue;
        if (auto gone = disk.files.remove(disk.layout.image(digest)); !gone) return std::unexpected(gone.error());
        ++removed.files;
        removed.bytes += **size;
    }
    return removed;
}

} // namespace warmgraph::store
