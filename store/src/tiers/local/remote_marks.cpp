#include "tiers/local/remote_marks.hpp"

#include <algorithm>

#include "tiers/local/commit.hpp"
#include "tiers/local/folder_tag.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::store {
namespace {

constexpr std::size_t k_remote_digits = 16, k_name_digits = 64;
constexpr std::size_t k_most_text = 1024; ///< of a name

std::string_view word_of(RemoteMark mark) noexcept { return mark == RemoteMark::unsent ? "unsent" : "refused"; }

/// "<16 hex digits>.<mark>."
std::string prefix_of(std::string_view remote, RemoteMark mark)
{
    return fmt::format("{}.{}.", to_hex(sha256(as_bytes(remote))).substr(0, k_remote_digits), word_of(mark));
}

Path file_of(std::string_view remote, RemoteMark mark, const std::string& name)
{
    return Path(k_remotes) / (prefix_of(remote, mark) + to_hex(sha256(as_bytes(name))));
}

bool are_hex(std::string_view text, std::size_t digits)
{
    return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace

bool is_remote_mark(std::string_view name)
{
    if (name.size() < k_remote_digits || !are_hex(name.substr(0, k_remote_digits), k_remote_digits)) return false;
    name.remove_prefix(k_remote_digits);
    for (const RemoteMark mark : {RemoteMark::unsent, RemoteMark::refused})
        if (const std::string between = fmt::format(".{}.", word_of(mark)); name.starts_with(between))
            return are_hex(name.substr(between.size()), k_name_digits);
    return false;
}

Result<void> set_mark(const Disk& disk, std::string_view remote, RemoteMark mark, const std::string& name)
{
    if (auto ok = disk.may_make("mark an object of a remote"); !ok) return ok;
    return commit(disk.files, file_of(remote, mark, name), as_bytes(name), disk.modes, Durability::unsynced);
}

Result<void> clear_mark(const Disk& disk, std::string_view remote, RemoteMark mark, const std::string& name)
{
    if (auto ok = disk.may_remove("unmark an object of a remote"); !ok) return ok;
    return disk.files.remove(file_of(remote, mark, name));
}

Result<std::vector<std::string>> marks(const Disk& disk, std::string_view remote, RemoteMark mark)
{
    std::vector<std::string> names;
    const auto items = disk.files.list(Path(k_remotes));
    if (!items && items.error().code == ErrorCode::not_found) return names;
    if (!items) return std::unexpected(items.error());
    const std::string prefix = prefix_of(remote, mark);
    for (const DirectoryItem& item : *items) {
        if (!item.name.starts_with(prefix)) continue;
        const auto file = disk.read(Path(k_remotes) / item.name, {k_most_text});
        if (!file || !*file || !(*file)->bytes) continue;
        std::string name(as_text(*(*file)->bytes));
        if (file_of(remote, mark, name).filename() == item.name && name_from_text(name))
            names.push_back(std::move(name));
    }
    std::ranges::sort(names);
    return names;
}

} // namespace warmgraph::store
