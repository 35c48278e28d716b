#include "tiers/local/quarantine.hpp"

#include <algorithm>

#include "tiers/local/own_names.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::store {
namespace {

/// Keeps quarantine from growing when a disk damages file after file.
void drop_oldest(FileSystem& files, const Path& folder)
{
    const auto items = files.list(folder);
    if (!items) return;
    std::vector<std::pair<std::chrono::system_clock::time_point, std::string>> kept;
    for (const DirectoryItem& item : *items) {
        if (!is_quarantined(item.name) || is_reason(item.name)) continue;
        if (const auto info = files.info(folder / item.name); info && *info)
            kept.emplace_back((*info)->modified, item.name);
    }
    if (kept.size() <= k_max_quarantined) return;
    std::ranges::sort(kept);
    kept.resize(kept.size() - k_max_quarantined);
    for (const auto& [time, name] : kept) {
        for (const Path& path : {folder / name, folder / (name + std::string(k_reason_suffix))}) {
            if (const auto removed = files.remove(path); !removed)
                log().debug("cannot remove a file from quarantine: {}", removed.error().message);
        }
    }
}

} // namespace

void quarantine(const Disk& disk, const Path& path, const Stamp& judged, const Error& reason)
{
    const auto& [layout, options, modes, trust, files, clock] = disk;
    const auto now = files.info(path);
    if (now && (!*now || stamp_of(**now) != judged)) return;

    const Path folder = layout.quarantine();
    const std::string name = fmt::format("{}-{}", random_uuid(), path.filename().string());
    auto moved = files.make_directories(folder, modes.folder);
    if (moved) moved = files.rename(path, folder / name, Durability::unsynced);
    if (!moved) {
        if (moved.error().code == ErrorCode::not_found) return; // another process moved it first
        log().warn("{} is refused, but cannot be moved to quarantine: {} ({})", (layout.root() / path).string(),
                   reason.message, moved.error().message);
        return;
    }
    log().warn("quarantined {}: {}", (layout.root() / path).string(), reason.message);
    const std::string text = fmt::format("{}\n{}: {}\n", path.string(), to_string(reason.code), reason.message);
    const auto noted = files.write_new(folder / (name + std::string(k_reason_suffix)), as_bytes(text), modes.file,
                                       Durability::unsynced);
    if (!noted) log().debug("cannot write the reason beside {}: {}", name, noted.error().message);
    drop_oldest(files, folder);
}

} // namespace warmgraph::store
