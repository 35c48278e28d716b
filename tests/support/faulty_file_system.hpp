// A FileSystem whose Nth operation fails, once or from there on for ever, with a chosen error. Everything else goes to
// the FileSystem that it wraps. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/file_system.hpp"

namespace warmgraph::test {

/// Hands everything to another FileSystem: a base for those that interfere with single operations.
class ForwardingFileSystem : public FileSystem {
public:
    explicit ForwardingFileSystem(FileSystem& inner = posix_file_system()) : m_inner(inner) {}

    Result<std::optional<Bytes>> read(const Path& path, std::uint64_t limit) override
    {
        return m_inner.read(path, limit);
    }
    Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability) override
    {
        return m_inner.write_new(path, bytes, mode, durability);
    }
    Result<void> rename(const Path& from, const Path& to, Durability durability) override
    {
        return m_inner.rename(from, to, durability);
    }
    Result<void> remove(const Path& path) override { return m_inner.remove(path); }
    Result<void> make_directories(const Path& path, std::uint32_t mode) override
    {
        return m_inner.make_directories(path, mode);
    }
    Result<std::vector<DirectoryItem>> list(const Path& path) override { return m_inner.list(path); }
    Result<std::optional<FileInfo>> info(const Path& path) override { return m_inner.info(path); }
    Result<void> touch(const Path& path) override { return m_inner.touch(path); }
    Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) override
    {
        return m_inner.try_lock(path, mode);
    }

private:
    FileSystem& m_inner;
};

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
        m_code = code;
        m_lasts = lasts;
        m_leaves = leaves;
        m_operations = 0;
        m_injected = 0;
    }
    void stop_failing() { fail_at(std::numeric_limits<std::uint64_t>::max(), ErrorCode::io_failed); }
    [[nodiscard]] std::uint64_t operations() const noexcept { return m_operations; } ///< since fail_at
    [[nodiscard]] std::uint64_t injected() const noexcept { return m_injected; }     ///< failures since fail_at

    Result<std::optional<Bytes>> read(const Path& path, std::uint64_t limit) override
    {
        if (auto failed = next("read", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::read(path, limit);
    }
    Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability) override
    {
        if (auto failed = next("write", path)) {
            if (failed->second == Leaves::half_a_file) {
                static_cast<void>(
                    ForwardingFileSystem::write_new(path, bytes.first(bytes.size() / 2), mode, durability));
            }
            return std::unexpected(failed->first);
        }
        return ForwardingFileSystem::write_new(path, bytes, mode, durability);
    }
    Result<void> rename(const Path& from, const Path& to, Durability durability) override
    {
        if (auto failed = next("rename", from)) return std::unexpected(failed->first);
        return ForwardingFileSystem::rename(from, to, durability);
    }
    Result<void> remove(const Path& path) override
    {
        if (auto failed = next("remove", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::remove(path);
    }
    Result<void> make_directories(const Path& path, std::uint32_t mode) override
    {
        if (auto failed = next("make folder", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::make_directories(path, mode);
    }
    Result<std::vector<DirectoryItem>> list(const Path& path) override
    {
        if (auto failed = next("list", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::list(path);
    }
    Result<std::optional<FileInfo>> info(const Path& path) override
    {
        if (auto failed = next("inspect", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::info(path);
    }
    Result<void> touch(const Path& path) override
    {
        if (auto failed = next("touch", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::touch(path);
    }
    Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) override
    {
        if (auto failed = next("lock", path)) return std::unexpected(failed->first);
        return ForwardingFileSystem::try_lock(path, mode);
    }

private:
    /// The failure, and what it leaves where it is a write.
    std::optional<std::pair<Error, Leaves>> next(const char* operation, const Path& path)
    {
        const std::scoped_lock guard(m_mutex);
        ++m_operations;
        const bool fails = m_lasts == Lasts::once ? m_operations == m_nth : m_operations >= m_nth;
        if (!fails) return std::nullopt;
        ++m_injected;
        return std::pair{Error{m_code, fmt::format("injected failure: {} {}", operation, path.string())}, m_leaves};
    }

    std::mutex m_mutex;
    std::uint64_t m_nth = std::numeric_limits<std::uint64_t>::max();
    ErrorCode m_code = ErrorCode::io_failed;
    Lasts m_lasts = Lasts::once;
    Leaves m_leaves = Leaves::nothing;
    std::atomic<std::uint64_t> m_operations = 0;
    std::atomic<std::uint64_t> m_injected = 0;
};

} // namespace warmgraph::test
