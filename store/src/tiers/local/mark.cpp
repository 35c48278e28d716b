#include "tiers/local/mark.hpp"

#include <algorithm>

#include "tiers/local/commit.hpp"
#include "tiers/local/temporary.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::store {
namespace {

constexpr std::string_view k_signature = "Signature: 8a477f597d28d172789f06886806bc55\n"; // the standard's
constexpr std::string_view k_maker = "# warmgraph cache folder, made for entry format ";
constexpr std::uint64_t k_mark_cap = 4096; ///< bytes that are looked at

Result<bool> read_mark(FileSystem& files, const Path& root)
{
    const auto content = files.read(k_mark_file, k_mark_cap);
    if (!content) return within(fmt::format("cache folder {}", root.string()), content.error());
    return *content && is_mark((*content)->bytes);
}

struct Look {
    Ownership ownership;
    std::string other{}; ///< where it is foreign: the first file that is none of the library's
};

/// What `rm -rf cache/*` leaves of a cache: shells do not name files with a dot there.
bool is_left_over(const DirectoryItem& item)
{
    return item.type == FileType::regular &&
           (is_temporary(item.name) || item.name == k_leases_file || item.name == k_prune_lock);
}

Result<Look> look(FileSystem& files, const Path& root)
{
    auto marked = read_mark(files, root);
    if (!marked) return std::unexpected(marked.error());
    if (*marked) return Look{Ownership::marked};
    const auto items = files.list("");
    if (!items) return within(fmt::format("cache folder {}", root.string()), items.error());
    const auto other = std::ranges::find_if_not(*items, is_left_over);
    if (other == items->end()) return Look{Ownership::empty};
    // Another process may have marked the folder and gone on between the two looks. The mark is its first file.
    marked = read_mark(files, root);
    if (!marked) return std::unexpected(marked.error());
    return *marked ? Look{Ownership::marked} : Look{Ownership::foreign, other->name};
}

Error foreign(const Path& root, const std::string& other)
{
    return {
        ErrorCode::permission_denied,
        fmt::format("cache folder {} has no {} of warmgraph and holds '{}', expected a folder that warmgraph made, or "
                    "an empty one: give a new folder (WARMGRAPH_CACHE_DIR, cache_dir or --cache-dir); if an older "
                    "warmgraph made this one, which wrote no such file, delete it: its entries are recorded anew",
                    root.string(), k_mark_file, printable(other, 64))};
}

} // namespace

std::string mark_text()
{
    return fmt::format("{}{}{}\n"
                       "# Everything here can be made again: backups may leave it out (https://bford.info/cachedir/).\n"
                       "# warmgraph changes files only in a folder that has this file.\n",
                       k_signature, k_maker, cachefmt::k_format_version);
}

bool is_mark(ByteView content)
{
    std::string_view text = as_text(content);
    if (!text.starts_with(k_signature)) return false;
    text.remove_prefix(k_signature.size());
    return text.starts_with(k_maker);
}

Result<Ownership> ownership(FileSystem& files, const Path& root)
{
    const auto found = look(files, root);
    if (!found) return std::unexpected(found.error());
    return found->ownership;
}

Result<void> refuse_foreign(FileSystem& files, const Path& root)
{
    const auto found = look(files, root);
    if (!found) return std::unexpected(found.error());
    if (found->ownership == Ownership::foreign) return std::unexpected(foreign(root, found->other));
    return {};
}

Result<void> ensure_mark(FileSystem& files, const Path& root, Modes modes)
{
    // A folder that was removed is made again first: what is looked at is what is written to.
    if (auto made = files.make_directories("", modes.folder); !made)
        return within(fmt::format("cannot make cache folder {}", root.string()), made.error());
    const auto found = look(files, root);
    if (!found) return std::unexpected(found.error());
    switch (found->ownership) {
    case Ownership::marked: return {};
    case Ownership::foreign: return std::unexpected(foreign(root, found->other));
    case Ownership::empty: break;
    }
    // Synced: after a power cut an empty mark would make the folder foreign.
    const std::string text = mark_text();
    if (auto done = commit(files, k_mark_file, as_bytes(text), modes); !done)
        return within(fmt::format("cannot mark cache folder {}", root.string()), done.error());
    return {};
}

bool has_mark(FileSystem& files)
{
    const auto marked = read_mark(files, {});
    return marked && *marked;
}

} // namespace warmgraph::store
