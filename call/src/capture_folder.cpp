#include "warmgraph/call/capture_folder.hpp"

#include <algorithm>

#include <unistd.h>

#include "warmgraph/base/process.hpp"

namespace warmgraph {

namespace {

constexpr std::string_view k_ending = ".wgcapture";
constexpr std::uint32_t k_file_mode = 0600, k_folder_mode = 0700, k_others_write = 0022;

/// Returns the beginning of the names of a call's files, such as "decode-1f2e3d4c5b6a7988-".
std::string beginning_of(const cachefmt::EntryKey& key)
{
    Sha256 all;
    for (const std::string* text : {&key.function.model_info, &key.function.rank, &key.function.function})
        all.update_field(*text);
    all.update_field(ByteView{key.guards_digest.bytes});
    return fmt::format("{}-{}-", key.function.function, to_hex(all.finish()).substr(0, 16));
}

/// Refuses a folder that other users may write: they could place captures there, which count as proof.
Result<void> admits(const FileInfo& info, const std::filesystem::path& path)
{
    const bool is_ours = info.owner == ::geteuid() || info.owner == 0;
    if (is_ours && (info.mode & k_others_write) == 0) return {};
    return fail(
        ErrorCode::permission_denied,
        "{} can be written by other users (owner {}, mode {:04o}): use a folder of your own, or `chmod go-w` it",
        path.string(), info.owner, info.mode);
}

} // namespace

Result<CaptureFolder> CaptureFolder::open(FileSystem& files, const std::string& path, bool makes)
{
    const std::filesystem::path folder = std::filesystem::absolute(path);
    if (makes)
        if (auto made = files.make_directories(folder, k_folder_mode); !made) return std::unexpected(made.error());
    auto opened = files.open_folder(folder, admits);
    if (!opened) return std::unexpected(opened.error());
    return CaptureFolder{std::move(*opened)};
}

Result<std::vector<CaptureFolder::File>> CaptureFolder::files_of(const cachefmt::EntryKey& key) const
{
    const auto items = m_folder->list("");
    if (!items) return std::unexpected(items.error());
    const std::string beginning = beginning_of(key);
    std::vector<File> found;
    for (const DirectoryItem& item : *items) {
        if (!item.name.starts_with(beginning) || !item.name.ends_with(k_ending)) continue;
        const auto info = m_folder->info(item.name);
        if (info && *info) found.push_back({item.name, (**info).modified});
    }
    std::ranges::sort(found, std::ranges::greater{},
                      [](const File& file) { return std::pair{file.written, file.name}; });
    return found;
}

Result<StoredCapture> CaptureFolder::read(const std::string& name, const cachefmt::EntryKey& key) const
{
    auto content = m_folder->read(name, k_most_capture_bytes + 1);
    if (!content) return std::unexpected(content.error());
    if (!*content) return fail(ErrorCode::not_found, "it is gone");
    if (auto admitted = admits((**content).info, name); !admitted) return std::unexpected(admitted.error());
    if ((**content).bytes.size() > k_most_capture_bytes)
        return fail(ErrorCode::corrupt, "the file has more than {} bytes", k_most_capture_bytes);
    auto capture = decode_capture((**content).bytes);
    if (!capture) return capture;
    if (capture->key != key)
        return fail(ErrorCode::stale, "it belongs to another function, or to a call with other guards");
    if (capture->process == process_name())
        return fail(ErrorCode::stale, "this process wrote it, and only the capture of another process is of use");
    return capture;
}

auto CaptureFolder::find(const cachefmt::EntryKey& key) const -> Result<CaptureList>
{
    const auto files = files_of(key);
    if (!files) return std::unexpected(files.error());
    CaptureList found;
    for (const File& file : *files) {
        auto capture = found.captures.size() < k_most_captures
                           ? read(file.name, key)
                           : fail(ErrorCode::stale, "there are {} newer ones, which are used first", k_most_captures);
        if (capture)
            found.captures.push_back(std::move(*capture));
        else
            found.ignored.push_back(fmt::format("{}: {}", file.name, capture.error().message));
    }
    return found;
}

Result<std::string> CaptureFolder::write(const StoredCapture& capture)
{
    const std::string name = beginning_of(capture.key) + random_uuid() + std::string{k_ending};
    const std::string under_way = "." + name;
    if (auto written = m_folder->write_new(under_way, encode(capture), k_file_mode); !written)
        return std::unexpected(written.error());
    if (auto renamed = m_folder->rename(under_way, name); !renamed) {
        static_cast<void>(m_folder->remove(under_way));
        return std::unexpected(renamed.error());
    }
    const auto files = files_of(capture.key);
    if (!files) return name; // the old captures are not removed, but they only take room
    for (std::size_t i = k_most_captures; i < files->size(); ++i) static_cast<void>(m_folder->remove((*files)[i].name));
    return name;
}

} // namespace warmgraph
