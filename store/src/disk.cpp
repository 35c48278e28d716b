#include "disk.hpp"

#include <algorithm>

#include "mark.hpp"
#include "own_names.hpp"
#include "quarantine.hpp"
#include "warmgraph/store/names.hpp"

namespace warmgraph::store {
namespace {

/// Holds most headers, so that one read does. Measured headers are 2-8 KiB.
constexpr std::uint64_t k_first_read = 32 * 1024;

std::uint64_t entry_cap(const cachefmt::Limits& limits) noexcept
{
    return cachefmt::k_envelope_bytes + limits.header_bytes + limits.payload_stored_bytes;
}

/// A newer warmgraph's file is its business (an older reader misses and leaves it).
bool is_newer_format(ByteView prefix)
{
    return cachefmt::stored_format_version(prefix).value_or(0) > cachefmt::k_format_version;
}

/// Decodes what was read, if anything was.
template <class T, class Decode>
Judged<T> judge(const Judged<Bytes>& file, Asked asked, Decode decode)
{
    Judged<T> judged{file.info, file.content ? decode(*file.content) : std::unexpected(file.content.error())};
    if (judged.content || !file.content) return judged;
    const bool is_anothers = asked == Asked::by_name && is_newer_format(*file.content);
    // Its bytes are whole, and somebody else may accept them.
    if (is_anothers || judged.content.error().code == ErrorCode::untrusted) judged.fate = Judged<T>::Fate::leave;
    return judged;
}

/// The header's bytes at least: the first `k_first_read` of the file, or as many as the envelope says.
Result<std::optional<Bytes>> read_prefix(FileSystem& files, const Path& path, const cachefmt::Limits& limits)
{
    auto prefix = files.read(path, k_first_read);
    if (!prefix || !*prefix || (*prefix)->size() < k_first_read) return prefix;
    const auto extent = cachefmt::header_extent(**prefix, limits);
    return extent && *extent > k_first_read ? files.read(path, *extent) : prefix;
}

/// The folders below `folder` that may be part of a key at this level.
Result<std::vector<std::string>> folders_in(FileSystem& files, const Path& folder, std::size_t level)
{
    auto items = files.list(folder);
    if (!items) return std::unexpected(items.error());
    std::vector<std::string> names;
    for (DirectoryItem& item : *items) {
        if (item.type == FileType::directory && is_key_folder(level, item.name)) names.push_back(std::move(item.name));
    }
    return names;
}

} // namespace

Result<void> Disk::require_writable(std::string_view doing) const
{
    if (writable()) return {};
    return fail(ErrorCode::permission_denied, "cannot {} in {}: the cache was opened read-only", doing,
                layout.root().string());
}

Result<void> Disk::may_make(std::string_view doing) const
{
    if (auto ok = require_writable(doing); !ok) return ok;
    if (auto ok = ensure_mark(files, layout.root(), modes); !ok) return within(doing, ok.error());
    return {};
}

Result<void> Disk::may_remove(std::string_view doing) const
{
    if (auto ok = require_writable(doing); !ok) return ok;
    if (auto ok = refuse_foreign(files, layout.root()); !ok) return within(doing, ok.error());
    return {};
}

Result<std::optional<Judged<Bytes>>> Disk::read(const Path& path, std::uint64_t cap) const
{
    const auto info = files.info(path);
    if (!info) return std::unexpected(info.error());
    if (!*info) return std::nullopt;
    if ((*info)->type != FileType::regular) {
        return Judged<Bytes>{**info, fail(ErrorCode::corrupt, "expected a regular file, it is a folder, link or pipe")};
    }
    if ((*info)->size > cap) {
        return Judged<Bytes>{**info,
                             fail(ErrorCode::corrupt, "file has {} bytes, at most {} are read", (*info)->size, cap)};
    }
    auto bytes = files.read(path, cap);
    if (!bytes) return std::unexpected(bytes.error());
    if (!*bytes) return std::nullopt;
    return Judged<Bytes>{**info, std::move(**bytes)};
}

Result<std::optional<Judged<Entry>>> Disk::read_entry(const EntryKey& key, Asked asked) const
{
    const cachefmt::Trust trust = asked == Asked::by_key ? options.trust : cachefmt::Trust{};
    if (trust.require) { // before the payload is read; what is read below is verified again
        auto header = read_header(key, asked);
        if (!header) return std::unexpected(header.error());
        if (!*header) return std::nullopt;
        if (!(*header)->content && (*header)->content.error().code == ErrorCode::untrusted)
            return Judged<Entry>{(*header)->info, std::unexpected((*header)->content.error()),
                                 Judged<Entry>::Fate::leave};
    }
    const auto file = read(layout.entry(key), entry_cap(options.limits));
    if (!file) return std::unexpected(file.error());
    if (!*file) return std::nullopt;
    return judge<Entry>(**file, asked,
                        [&](ByteView bytes) { return cachefmt::decode(bytes, key, options.limits, trust); });
}

Result<std::optional<Judged<EntryHeader>>> Disk::read_header(const EntryKey& key, Asked asked) const
{
    const Path path = layout.entry(key);
    const auto info = files.info(path);
    if (!info) return std::unexpected(info.error());
    if (!*info) return std::nullopt;
    Judged<Bytes> file{**info, Bytes{}};
    if ((*info)->type != FileType::regular) {
        file.content = fail(ErrorCode::corrupt, "expected a regular file, it is a folder, link or pipe");
    } else {
        auto prefix = read_prefix(files, path, options.limits);
        if (!prefix) return std::unexpected(prefix.error());
        if (!*prefix) return std::nullopt;
        file.content = std::move(**prefix);
    }
    return judge<EntryHeader>(file, asked, [&](ByteView bytes) {
        return cachefmt::decode_header(bytes, key, options.limits, options.trust);
    });
}

Result<std::optional<Judged<Bytes>>> Disk::read_image(const Digest& digest, std::uint64_t size) const
{
    auto file = read(layout.image(digest), std::min(options.image_bytes, size));
    if (!file || !*file) return file;
    Judged<Bytes>& image = **file;
    if (!image.content && image.info.type == FileType::regular && size < options.image_bytes) {
        // Larger than the entry says. Where the image is whole, the entry is wrong, and others may need the image.
        const auto whole = read_image(digest, options.image_bytes);
        if (whole && *whole && (**whole).content) image.fate = Judged<Bytes>::Fate::leave;
    }
    if (image.content) {
        if (const Digest found = sha256(*image.content); found != digest) {
            image.content =
                fail(ErrorCode::corrupt, "image has SHA-256 {}, its name says {}", to_hex(found), to_hex(digest));
        }
    }
    return file;
}

Result<std::vector<Digest>> Disk::entries_of(const FunctionKey& function) const
{
    const auto items = files.list(layout.function(function));
    if (!items) return std::unexpected(items.error());
    std::vector<Digest> digests;
    for (const DirectoryItem& item : *items) {
        if (const auto digest = Layout::entry_digest(item.name)) digests.push_back(*digest);
    }
    return digests;
}

Result<std::vector<FunctionKey>> Disk::functions() const
{
    std::vector<FunctionKey> keys;
    const auto models = folders_in(files, layout.root(), 0);
    if (!models) return std::unexpected(models.error());
    for (const std::string& model : *models) {
        const auto ranks = folders_in(files, layout.root() / model, 1);
        if (!ranks) return std::unexpected(ranks.error());
        for (const std::string& rank : *ranks) {
            const auto functions = folders_in(files, layout.root() / model / rank, 2);
            if (!functions) return std::unexpected(functions.error());
            for (const std::string& function : *functions) {
                const auto items = files.list(layout.function({model, rank, function}));
                if (!items) return std::unexpected(items.error());
                if (!items->empty()) keys.push_back({model, rank, function});
            }
        }
    }
    std::ranges::sort(keys);
    return keys;
}

Result<std::vector<std::pair<Digest, std::uint64_t>>> Disk::images() const
{
    std::vector<std::pair<Digest, std::uint64_t>> found;
    const auto shards = files.list(layout.images());
    if (!shards) return std::unexpected(shards.error());
    for (const DirectoryItem& shard : *shards) {
        if (shard.type != FileType::directory) continue;
        const auto items = files.list(layout.images() / shard.name);
        if (!items) return std::unexpected(items.error());
        for (const DirectoryItem& item : *items) {
            const auto digest = Layout::image_digest(shard.name, item.name);
            if (!digest) continue;
            const auto info = files.info(layout.image(*digest));
            if (!info) return std::unexpected(info.error());
            if (*info) found.emplace_back(*digest, (*info)->size);
        }
    }
    return found;
}

void Disk::set_aside(const Path& path, const FileInfo& judged, const Error& reason) const
{
    if (writable() && has_mark(files, layout.root())) quarantine(files, layout, modes, path, judged, reason);
}

} // namespace warmgraph::store
