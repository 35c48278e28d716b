#include "upkeep/left_overs.hpp"

#include <algorithm>

#include "tiers/local/load_marks.hpp"
#include "tiers/local/own_names.hpp"
#include "tiers/local/temporary.hpp"

namespace warmgraph::store {
namespace {

class Sweep {
public:
    Sweep(const Disk& disk, std::chrono::nanoseconds limit) : m_disk(disk), m_end(disk.clock.steady() + limit) {}

    /// Sweeps the folder and the key folders below it. `level`: the key level of the folders in `folder`.
    void sweep_keys(const Path& folder, std::size_t level)
    {
        for (const std::string& name : sweep(folder))
            if (level < k_key_levels && is_key_folder(level, name)) sweep_keys(folder / name, level + 1);
    }
    void sweep_shards(const Path& folder)
    {
        for (const std::string& shard : sweep(folder))
            if (shard.size() == 2) sweep(folder / shard);
    }
    /// Removes the left-overs in a folder and returns its sub-folders.
    std::vector<std::string> sweep(const Path& folder)
    {
        std::vector<std::string> folders;
        if (m_disk.clock.steady() >= m_end) return folders;
        auto items = m_disk.files.list(folder);
        if (!items) return folders;
        const bool has_temporaries =
            std::ranges::any_of(*items, [](const DirectoryItem& item) { return is_temporary(item.name); });
        if (has_temporaries) count += remove_abandoned(m_disk.files, m_disk.clock, folder);
        for (const std::string& mark : spent_load_marks(m_disk, folder, *items))
            if (m_disk.files.remove(folder / mark)) ++count; // a mark that cannot be removed stays for the next time
        for (DirectoryItem& item : *items)
            if (item.type == FileType::directory) folders.push_back(std::move(item.name));
        if (!folders.empty()) std::ranges::rotate(folders, folders.begin() + start(folders.size()));
        return folders;
    }

    std::uint64_t count = 0;

private:
    /// The index to begin with; it differs from call to call.
    [[nodiscard]] std::ptrdiff_t start(std::size_t size) const
    {
        const auto now = m_disk.clock.wall().time_since_epoch() / std::chrono::microseconds(1);
        return static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(now) % size);
    }

    const Disk& m_disk;
    std::chrono::steady_clock::time_point m_end;
};

} // namespace

std::uint64_t sweep_left_overs(const Disk& disk, std::chrono::nanoseconds limit)
{
    Sweep sweep(disk, limit);
    // 256 folders of images, and maybe thousands of functions: when the time ends, the next sweep begins elsewhere.
    sweep.sweep(Layout::quarantine());
    sweep.sweep_shards(Layout::images());
    for (const ArtifactKind kind : kinds_with_files()) sweep.sweep_shards(Layout::artifacts(kind));
    sweep.sweep_keys("", 0);
    return sweep.count;
}

} // namespace warmgraph::store
