// A read-only folder in memory. It has its files by their path.
#pragma once

#include <map>
#include <string>

#include <unistd.h>

#include "warmgraph/base/file_system.hpp"

namespace warmgraph::fuzz {

class MemoryFolder final : public FileSystem {
public:
    using Files = std::map<std::string, Bytes>;
    /// `prefix` is removed from requested paths. `below` is the path of this folder among the files. `files` must
    /// outlive this object.
    MemoryFolder(const Files& files, std::string prefix, std::string below = "")
        : m_files(files), m_prefix(std::move(prefix)), m_below(std::move(below))
    {
    }

    Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission) override
    {
        std::string folder = folder_of(path);
        const auto first = m_files.lower_bound(folder);
        if (!folder.empty() && (first == m_files.end() || !first->first.starts_with(folder)))
            return fail(ErrorCode::not_found, "no folder {}", path.string());
        return std::make_unique<MemoryFolder>(m_files, "", std::move(folder));
    }
    Result<std::optional<FileContent>> read(const Path& path, std::uint64_t limit) override
    {
        const auto file = m_files.find(name_of(path));
        if (file == m_files.end()) return std::nullopt;
        const Bytes& all = file->second;
        return FileContent{info_of(FileType::regular, all.size()),
                           Bytes(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), limit)))};
    }
    Result<std::vector<DirectoryItem>> list(const Path& path) override
    {
        std::vector<DirectoryItem> items;
        const std::string folder = folder_of(path);
        for (const auto& [name, bytes] : m_files) {
            if (!name.starts_with(folder)) continue;
            const auto slash = name.find('/', folder.size());
            const std::string item = name.substr(folder.size(), slash - folder.size());
            if (items.empty() || items.back().name != item)
                items.push_back({item, slash == std::string::npos ? FileType::regular : FileType::directory});
        }
        return items;
    }
    Result<std::optional<FileInfo>> info(const Path& path) override
    {
        if (const auto file = m_files.find(name_of(path)); file != m_files.end())
            return info_of(FileType::regular, file->second.size());
        const std::string folder = folder_of(path);
        const auto below = m_files.lower_bound(folder);
        if (below == m_files.end() || !below->first.starts_with(folder)) return std::nullopt;
        return info_of(FileType::directory, 0);
    }
    Result<void> write_new(const Path&, ByteView, std::uint32_t, Durability) override { return only_read(); }
    Result<void> rename(const Path&, const Path&, Durability) override { return only_read(); }
    Result<void> remove(const Path&) override { return only_read(); }
    Result<void> make_directories(const Path&, std::uint32_t) override { return only_read(); }
    Result<void> touch(const Path&) override { return only_read(); }
    Result<std::unique_ptr<FileLock>> try_lock(const Path&, std::uint32_t) override { return only_read(); }
    Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path&, std::optional<std::uint32_t>) override
    {
        return only_read();
    }
    Result<std::uint64_t> disk_bytes(const Path&) override { return 1ULL << 40; }

private:
    static std::unexpected<Error> only_read() { return fail(ErrorCode::permission_denied, "this folder is in memory"); }
    static FileInfo info_of(FileType type, std::uint64_t size)
    {
        return {type, size, type == FileType::regular ? 0600U : 0700U, ::geteuid(), ::getegid(), 1, {}};
    }
    [[nodiscard]] std::string name_of(const Path& path) const
    {
        const std::string& text = path.native();
        return text.starts_with(m_prefix) ? m_below + text.substr(m_prefix.size()) : "?";
    }
    [[nodiscard]] std::string folder_of(const Path& path) const
    {
        if (path.empty() || path.native() + "/" == m_prefix) return m_below;
        return name_of(path) + "/";
    }

    const Files& m_files;
    std::string m_prefix, m_below;
};

} // namespace warmgraph::fuzz
