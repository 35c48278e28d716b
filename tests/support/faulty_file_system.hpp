// A FileSystem whose Nth operation fails, once or from there on for ever, with a chosen error. Everything else goes to
// the FileSystem that it wraps. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/file_system.hpp"

namespace warmgraph::test {

/// Hands everything to another FileSystem: a base for those that interfere with single operations. What is overridden
/// here is met in opened folders as well; `inner` is the file system, or the folder, that an operation is meant for.
class ForwardingFileSystem : public FileSystem {
public:
    explicit ForwardingFileSystem(FileSystem& inner = posix_file_system()) : m_inner(inner) {}

    Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission admits) final
    {
        return open_folder_in(m_inner, path, std::move(admits));
    }
    Result<std::optional<FileContent>> read(const Path& path, std::uint64_t limit) final
    {
        return read_in(m_inner, path, limit);
    }
    Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability) final
    {
        return write_new_in(m_inner, path, bytes, mode, durability);
    }
    Result<void> rename(const Path& from, const Path& to, Durability durability) final
    {
        return rename_in(m_inner, from, to, durability);
    }
    Result<void> remove(const Path& path) final { return remove_in(m_inner, path); }
    Result<void> make_directories(const Path& path, std::uint32_t mode) final
    {
        return make_directories_in(m_inner, path, mode);
    }
    Result<std::vector<DirectoryItem>> list(const Path& path) final { return list_in(m_inner, path); }
    Result<std::optional<FileInfo>> info(const Path& path) final { return info_in(m_inner, path); }
    Result<void> touch(const Path& path) final { return touch_in(m_inner, path); }
    Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) final
    {
        return try_lock_in(m_inner, path, mode);
    }
    Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path& path, std::optional<std::uint32_t> mode) final
    {
        return open_byte_locks_in(m_inner, path, mode);
    }
    Result<std::uint64_t> disk_bytes(const Path& folder) final { return disk_bytes_in(m_inner, folder); }

protected:
    virtual Result<std::unique_ptr<FileSystem>> open_folder_in(FileSystem& inner, const Path& path, Admission admits);
    virtual Result<std::optional<FileContent>> read_in(FileSystem& inner, const Path& path, std::uint64_t limit)
    {
        return inner.read(path, limit);
    }
    virtual Result<void> write_new_in(FileSystem& inner, const Path& path, ByteView bytes, std::uint32_t mode,
                                      Durability durability)
    {
        return inner.write_new(path, bytes, mode, durability);
    }
    virtual Result<void> rename_in(FileSystem& inner, const Path& from, const Path& to, Durability durability)
    {
        return inner.rename(from, to, durability);
    }
    virtual Result<void> remove_in(FileSystem& inner, const Path& path) { return inner.remove(path); }
    virtual Result<void> make_directories_in(FileSystem& inner, const Path& path, std::uint32_t mode)
    {
        return inner.make_directories(path, mode);
    }
    virtual Result<std::vector<DirectoryItem>> list_in(FileSystem& inner, const Path& path) { return inner.list(path); }
    virtual Result<std::optional<FileInfo>> info_in(FileSystem& inner, const Path& path) { return inner.info(path); }
    virtual Result<void> touch_in(FileSystem& inner, const Path& path) { return inner.touch(path); }
    virtual Result<std::unique_ptr<FileLock>> try_lock_in(FileSystem& inner, const Path& path, std::uint32_t mode)
    {
        return inner.try_lock(path, mode);
    }
    virtual Result<std::unique_ptr<ByteLocks>> open_byte_locks_in(FileSystem& inner, const Path& path,
                                                                  std::optional<std::uint32_t> mode)
    {
        return inner.open_byte_locks(path, mode);
    }
    virtual Result<std::uint64_t> disk_bytes_in(FileSystem& inner, const Path& folder)
    {
        return inner.disk_bytes(folder);
    }

private:
    class Folder;
    FileSystem& m_inner;
};

/// An opened folder of the inner file system; each operation goes by its owner.
class ForwardingFileSystem::Folder final : public FileSystem {
public:
    Folder(ForwardingFileSystem& owner, std::unique_ptr<FileSystem> inner) : m_owner(owner), m_inner(std::move(inner))
    {
    }
    Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission admits) override
    {
        return m_owner.open_folder_in(*m_inner, path, std::move(admits));
    }
    Result<std::optional<FileContent>> read(const Path& path, std::uint64_t limit) override
    {
        return m_owner.read_in(*m_inner, path, limit);
    }
    Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability) override
    {
        return m_owner.write_new_in(*m_inner, path, bytes, mode, durability);
    }
    Result<void> rename(const Path& from, const Path& to, Durability durability) override
    {
        return m_owner.rename_in(*m_inner, from, to, durability);
    }
    Result<void> remove(const Path& path) override { return m_owner.remove_in(*m_inner, path); }
    Result<void> make_directories(const Path& path, std::uint32_t mode) override
    {
        return m_owner.make_directories_in(*m_inner, path, mode);
    }
    Result<std::vector<DirectoryItem>> list(const Path& path) override { return m_owner.list_in(*m_inner, path); }
    Result<std::optional<FileInfo>> info(const Path& path) override { return m_owner.info_in(*m_inner, path); }
    Result<void> touch(const Path& path) override { return m_owner.touch_in(*m_inner, path); }
    Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) override
    {
        return m_owner.try_lock_in(*m_inner, path, mode);
    }
    Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path& path, std::optional<std::uint32_t> mode) override
    {
        return m_owner.open_byte_locks_in(*m_inner, path, mode);
    }
    Result<std::uint64_t> disk_bytes(const Path& folder) override { return m_owner.disk_bytes_in(*m_inner, folder); }

private:
    ForwardingFileSystem& m_owner;
    std::unique_ptr<FileSystem> m_inner;
};

inline Result<std::unique_ptr<FileSystem>> ForwardingFileSystem::open_folder_in(FileSystem& inner, const Path& path,
                                                                                Admission admits)
{
    auto folder = inner.open_folder(path, std::move(admits));
    if (!folder) return folder;
    return std::make_unique<Folder>(*this, std::move(*folder));
}

class FaultyFileSystem final : public ForwardingFileSystem {
public:
    enum class Lasts { once, for_ever };
    /// What a failing write_new leaves: nothing, as the real one does, or half a file, as a process that dies does.
    enum class Leaves { nothing, half_a_file };

    explicit FaultyFileSystem(FileSystem& inner = posix_file_system()) : ForwardingFileSystem(inner) {}

    /// The `nth` operation from now on fails (the next one is 1). Starts the count again.
    void fail_at(std::uint64_t nth, ErrorCode code, Lasts lasts = Lasts::once, Leaves leaves = Leaves::nothing)
    {
        const std::scoped_lock guard(m_mutex);
        m_nth = nth;
        m_operation.clear();
        m_code = code;
        m_lasts = lasts;
        m_leaves = leaves;
        m_operations = 0;
        m_injected = 0;
    }
    void stop_failing() { fail_at(std::numeric_limits<std::uint64_t>::max(), ErrorCode::io_failed); }
    [[nodiscard]] std::uint64_t operations() const noexcept { return m_operations; } ///< since fail_at
    [[nodiscard]] std::uint64_t injected() const noexcept { return m_injected; }     ///< failures since fail_at

    /// The next operations of this name ("lock", "write", ...) fail, however many; others do not. "" ends it.
    void fail_all(std::string operation, ErrorCode code)
    {
        stop_failing();
        const std::scoped_lock guard(m_mutex);
        m_operation = std::move(operation);
        m_code = code;
    }

protected:
    Result<std::unique_ptr<FileSystem>> open_folder_in(FileSystem& inner, const Path& path, Admission admits) override
    {
        if (auto failed = next("open folder", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::open_folder_in(inner, path, std::move(admits));
    }
    Result<std::optional<FileContent>> read_in(FileSystem& inner, const Path& path, std::uint64_t limit) override
    {
        if (auto failed = next("read", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::read_in(inner, path, limit);
    }
    Result<void> write_new_in(FileSystem& inner, const Path& path, ByteView bytes, std::uint32_t mode,
                              Durability durability) override
    {
        if (auto failed = next("write", path)) {
            if (failed->second == Leaves::half_a_file)
                static_cast<void>(inner.write_new(path, bytes.first(bytes.size() / 2), mode, durability));
            return std::unexpected(failed->first);
        }
        return ForwardingFileSystem::write_new_in(inner, path, bytes, mode, durability);
    }
    Result<void> rename_in(FileSystem& inner, const Path& from, const Path& to, Durability durability) override
    {
        if (auto failed = next("rename", from)) return std::unexpected(failed->first);
        return ForwardingFileSystem::rename_in(inner, from, to, durability);
    }
    Result<void> remove_in(FileSystem& inner, const Path& path) override
    {
        if (auto failed = next("remove", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::remove_in(inner, path);
    }
    Result<void> make_directories_in(FileSystem& inner, const Path& path, std::uint32_t mode) override
    {
        if (auto failed = next("make folder", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::make_directories_in(inner, path, mode);
    }
    Result<std::vector<DirectoryItem>> list_in(FileSystem& inner, const Path& path) override
    {
        if (auto failed = next("list", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::list_in(inner, path);
    }
    Result<std::optional<FileInfo>> info_in(FileSystem& inner, const Path& path) override
    {
        if (auto failed = next("inspect", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::info_in(inner, path);
    }
    Result<void> touch_in(FileSystem& inner, const Path& path) override
    {
        if (auto failed = next("touch", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::touch_in(inner, path);
    }
    Result<std::unique_ptr<FileLock>> try_lock_in(FileSystem& inner, const Path& path, std::uint32_t mode) override
    {
        if (auto failed = next("lock", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::try_lock_in(inner, path, mode);
    }
    Result<std::unique_ptr<ByteLocks>> open_byte_locks_in(FileSystem& inner, const Path& path,
                                                          std::optional<std::uint32_t> mode) override
    {
        if (auto failed = next("open locks", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::open_byte_locks_in(inner, path, mode);
    }
    Result<std::uint64_t> disk_bytes_in(FileSystem& inner, const Path& folder) override
    {
        if (auto failed = next("inspect the disk", folder)) return std::unexpected(failed->first);
        return ForwardingFileSystem::disk_bytes_in(inner, folder);
    }

private:
    /// The failure, and what it leaves where it is a write.
    std::optional<std::pair<Error, Leaves>> next(const char* operation, const Path& path)
    {
        const std::scoped_lock guard(m_mutex);
        ++m_operations;
        const bool is_its_turn = m_lasts == Lasts::once ? m_operations == m_nth : m_operations >= m_nth;
        const bool fails = m_operation.empty() ? is_its_turn : m_operation == operation;
        if (!fails) return std::nullopt;
        ++m_injected;
        return std::pair{Error{m_code, fmt::format("injected failure: {} {}", operation, path.string())}, m_leaves};
    }

    std::mutex m_mutex;
    std::uint64_t m_nth = std::numeric_limits<std::uint64_t>::max();
    std::string m_operation; ///< the name of those that fail; "": they are counted instead
    ErrorCode m_code = ErrorCode::io_failed;
    Lasts m_lasts = Lasts::once;
    Leaves m_leaves = Leaves::nothing;
    std::atomic<std::uint64_t> m_operations = 0;
    std::atomic<std::uint64_t> m_injected = 0;
};

} // namespace warmgraph::test
