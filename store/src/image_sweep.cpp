#include "image_sweep.hpp"

#include <set>

#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// Digests that entries name; nullopt when there are entries whose images cannot be known.
Result<std::optional<std::set<Digest>>> images_in_use(const Disk& disk)
{
    std::set<Digest> used;
    const auto functions = disk.functions();
    if (!functions) return std::unexpected(functions.error());
    for (const FunctionKey& function : *functions) {
        const auto digests = disk.entries_of(function);
        if (!digests) return std::unexpected(digests.error());
        for (const Digest& digest : *digests) {
            const auto entry = disk.read_entry({function, digest});
            if (!entry) return std::unexpected(entry.error());
            if (!*entry) continue;
            if ((*entry)->content) {
                for (const auto& image : (*entry)->content->graph.images) used.insert(image.digest);
            } else if ((*entry)->fate == Judged<Entry>::Fate::leave) {
                return std::nullopt;
            }
        }
    }
    return used;
}

} // namespace

Result<std::uint64_t> sweep_images(const Disk& disk, std::chrono::seconds grace)
{
    const auto used = images_in_use(disk);
    if (!used) return std::unexpected(used.error());
    if (!*used) {
        log().info("unused images stay: a newer warmgraph's entries may name them");
        return 0;
    }
    const auto images = disk.images();
    if (!images) return std::unexpected(images.error());
    std::uint64_t removed = 0;
    for (const auto& [digest, size] : *images) {
        if ((*used)->contains(digest)) continue;
        // Looked at right before: a publisher that finds the image present touches it.
        const auto info = disk.files.info(disk.layout.image(digest));
        if (!info) return std::unexpected(info.error());
        if (!*info || (grace.count() > 0 && disk.clock.wall() - (*info)->modified < grace)) continue;
        if (auto gone = disk.files.remove(disk.layout.image(digest)); !gone) return std::unexpected(gone.error());
        ++removed;
    }
    return removed;
}

} // namespace warmgraph::store
