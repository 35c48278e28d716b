// `warmgraph clear`: removes entries, unused images, what is in quarantine.
#include <algorithm>

#include "commands.hpp"

namespace warmgraph::tool {

namespace {

struct Removed {
    std::uint64_t entries = 0, images = 0, quarantined = 0;
};

Result<std::uint64_t> image_count(const store::LocalStore& store)
{
    const auto images = store.images();
    if (!images) return std::unexpected(images.error());
    return images->size();
}

Result<std::uint64_t> clear_quarantine(const Context& context, const std::filesystem::path& folder)
{
    const auto items = context.files.list(folder);
    if (!items) return std::unexpected(items.error());
    std::uint64_t count = 0;
    for (const DirectoryItem& item : *items) {
        if (const auto done = context.files.remove(folder / item.name); !done) return std::unexpected(done.error());
        if (!item.name.ends_with(".reason")) ++count; // a note beside a file
    }
    return count;
}

Result<Removed> remove(const Context& context, store::LocalStore& store, const ClearOptions& options)
{
    Removed removed;
    const bool all = options.kind == ClearKind::all;
    const auto images_before = image_count(store);
    if (!images_before) return std::unexpected(images_before.error());
    if (all || options.kind == ClearKind::entries) {
        const auto count = store.clear(options.model, options.function);
        if (!count) return std::unexpected(count.error());
        removed.entries = *count;
    }
    if (options.kind == ClearKind::images)
        if (const auto count = store.remove_unused_images(); !count) return std::unexpected(count.error());
    const auto images_after = image_count(store);
    if (!images_after) return std::unexpected(images_after.error());
    removed.images = *images_before - std::min(*images_before, *images_after);
    if (all || options.kind == ClearKind::quarantine) {
        const auto count = clear_quarantine(context, store.root() / "quarantine");
        if (!count) return std::unexpected(count.error());
        removed.quarantined = *count;
    }
    return removed;
}

} // namespace

Result<int> clear(const Context& context, const ClearOptions& options)
{
    if ((options.model || options.function) && options.kind != ClearKind::entries)
        return fail(ErrorCode::invalid_argument,
                    "--model and --func choose entries: leave them out with --kind images, quarantine or all");
    const auto store = open_store(context, store::Access::read_write);
    if (!store) return std::unexpected(store.error());
    Removed removed;
    if (*store) {
        const auto done = remove(context, **store, options);
        if (!done) return std::unexpected(done.error());
        removed = *done;
    }
    if (context.output == Output::json)
        print(Json{{"cache_dir", context.cache_dir.string()},
                   {"removed",
                    {{"entries", removed.entries}, {"images", removed.images}, {"quarantined", removed.quarantined}}}});
    else if (!*store)
        print(no_folder_text(context) + "\n");
    else
        print(fmt::format("removed {} {}, {}, {}\n", removed.entries, removed.entries == 1 ? "entry" : "entries",
                          plural(removed.images, "image"), plural(removed.quarantined, "quarantined file")));
    return k_ok;
}

} // namespace warmgraph::tool
