#include "tiers/local/folder_tag.hpp"

#include <algorithm>

#include "tiers/local/commit.hpp"
#include "tiers/local/own_names.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::store {
namespace {

constexpr std::string_view k_signature = "Signature: 8a477f597d28d172789f06886806bc55\n"; // fixed by the standard
constexpr std::string_view k_maker = "# warmgraph cache folder, made for entry format ";

Result<bool> read_tag(FileSystem& files, const Path& root)
{
    const auto content = files.read(k_tag_file, k_tag_cap);
    if (!content) return within(fmt::format("cache folder {}", root.string()), content.error());
    return *content && is_tag((*content)->bytes);
}

struct OwnershipFinding {
    Ownership ownership;
    std::string other{}; ///< for a foreign folder: the first foreign file
};

/// True for a folder that every new ext file system has (mke2fs(8)); no user made it.
bool is_of_volume(const DirectoryItem& item) { return item.type == FileType::directory && item.name == "lost+found"; }

/// Finds out whether a folder without a tag holds foreign files.
class OwnershipSearch {
public:
    explicit OwnershipSearch(FileSystem& files) : m_files(files) {}

    /// Looks into one folder, and ends at the first foreign file. `names`: the folders from the root down.
    Result<void> look_into(const std::vector<std::string>& names)
    {
        Path folder;
        for (const std::string& name : names) folder /= name;
        const auto items = m_files.list(folder);
        if (!items && (items.error().code != ErrorCode::permission_denied || names.empty()))
            return std::unexpected(items.error());
        if (!items) other = names.front();
        // Files before folders: a home folder has files at its top, so the search ends soon.
        for (const bool folders : {false, true}) {
            for (const DirectoryItem& item : items ? *items : std::vector<DirectoryItem>{}) {
                if (!other.empty()) return {};
                if ((item.type == FileType::directory) != folders || (names.empty() && is_of_volume(item))) continue;
                std::vector<std::string> below = names;
                below.push_back(item.name);
                if (folders) {
                    if (auto ok = look_into(below); !ok) return ok;
                } else if (item.type != FileType::regular || !is_own_file(below)) {
                    other = below.front();
                } else if (!names.empty()) {
                    has_own = true;
                }
            }
        }
        return {};
    }

    std::string other; ///< the item in the root that is, or holds, the first foreign file
    bool has_own =
        false; ///< whether there are more files than `rm -rf cache/*` leaves (it leaves names that begin with a dot)

private:
    FileSystem& m_files;
};

Result<OwnershipFinding> finding(FileSystem& files, const Path& root)
{
    auto is_tagged = read_tag(files, root);
    if (!is_tagged) return std::unexpected(is_tagged.error());
    if (*is_tagged) return OwnershipFinding{Ownership::tagged};
    OwnershipSearch search(files);
    if (const auto searched = search.look_into({}); !searched)
        return within(fmt::format("cache folder {}", root.string()), searched.error());
    if (search.other.empty()) return OwnershipFinding{search.has_own ? Ownership::untagged : Ownership::empty};
    // Another process may have tagged and filled the folder between the two looks. The tag is always the first file.
    is_tagged = read_tag(files, root);
    if (!is_tagged) return std::unexpected(is_tagged.error());
    return *is_tagged ? OwnershipFinding{Ownership::tagged} : OwnershipFinding{Ownership::foreign, search.other};
}

Error foreign(const Path& root, const std::string& other)
{
    return {ErrorCode::permission_denied,
            fmt::format("cache folder {} has no {} of warmgraph, but contains '{}', expected a folder that warmgraph "
                        "made, or an empty one: {}",
                        root.string(), k_tag_file, printable(other, 64), propose_below(root))};
}

} // namespace

std::string propose_below(const Path& folder)
{
    return fmt::format(
        "give a folder of its own below it, for example {} (WARMGRAPH_CACHE_DIR, cache_dir or --cache-dir)",
        (folder / "warmgraph").string());
}

std::string tag_text()
{
    return fmt::format("{}{}{}\n"
                       "# Everything here can be made again: backups may leave it out (https://bford.info/cachedir/).\n"
                       "# warmgraph changes files only in a folder that has this file.\n",
                       k_signature, k_maker, cachefmt::k_format_version);
}

bool is_tag(ByteView content)
{
    std::string_view text = as_text(content);
    if (!text.starts_with(k_signature)) return false;
    text.remove_prefix(k_signature.size());
    return text.starts_with(k_maker);
}

Result<Ownership> ownership(FileSystem& files, const Path& root)
{
    const auto found = finding(files, root);
    if (!found) return std::unexpected(found.error());
    return found->ownership;
}

Result<void> refuse_foreign(FileSystem& files, const Path& root)
{
    const auto found = finding(files, root);
    if (!found) return std::unexpected(found.error());
    if (found->ownership == Ownership::foreign) return std::unexpected(foreign(root, found->other));
    return {};
}

Result<void> ensure_tag(FileSystem& files, const Path& root, Modes modes)
{
    // A removed folder is made again first, so that the folder that is checked is the folder that is written.
    if (auto made = files.make_directories("", modes.folder); !made)
        return within(fmt::format("cannot make cache folder {}", root.string()), made.error());
    const auto found = finding(files, root);
    if (!found) return std::unexpected(found.error());
    switch (found->ownership) {
    case Ownership::tagged: return {};
    case Ownership::foreign: return std::unexpected(foreign(root, found->other));
    case Ownership::untagged:
        log().info("cache folder {} has lost its {}: it gets a new one", root.string(), k_tag_file);
        break;
    case Ownership::empty: break;
    }
    // The tag is synced, because an empty tag after a power cut would make the folder foreign.
    const std::string text = tag_text();
    if (auto done = commit(files, k_tag_file, as_bytes(text), modes); !done)
        return within(fmt::format("cannot write the CACHEDIR.TAG of cache folder {}", root.string()), done.error());
    return {};
}

bool has_tag(FileSystem& files)
{
    const auto is_tagged = read_tag(files, {});
    return is_tagged && *is_tagged;
}

} // namespace warmgraph::store
