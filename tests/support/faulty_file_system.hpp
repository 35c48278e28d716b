// A FileSystem in which the Nth operation fails with a chosen error, or also all later operations. All other calls go
// to the wrapped FileSystem. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/base/file_system.hpp"

namespace warmgraph::test {

/// Wraps `inner`, a file system or an opened folder. All operations go through the owner of this object.
template <class Owner>
class ForwardingFiles : public FileSystem {
public:
    ForwardingFiles(Owner& owner, FileSystem& inner) : m_owner(owner), m_inner(inner) {}

    Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission admits) final
    {
        return ask("open folder", path, [&] { return m_owner.open_folder_in(m_inner, path, std::move(admits)); });
    }
    Result<std::optional<FileContent>> read(const Path& path, std::uint64_t limit) final
    {
        return ask("read", path, [&] { return m_owner.read_in(m_inner, path, limit); });
    }
    Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability) final
    {
        return ask("write", path, [&] { return m_owner.write_new_in(m_inner, path, bytes, mode, durability); });
    }
    Result<void> rename(const Path& from, const Path& to, Durability durability) final
    {
        return ask("rename", from, [&] { return m_owner.rename_in(m_inner, from, to, durability); });
    }
    Result<void> remove(const Path& path) final
    {
        return ask("remove", path, [&] { return m_owner.remove_in(m_inner, path); });
    }
    Result<void> make_directories(const Path& path, std::uint32_t mode) final
    {
        return ask("make folder", path, [&] { return m_owner.make_directories_in(m_inner, path, mode); });
    }
    Result<std::vector<DirectoryItem>> list(const Path& path) final
    {
        return ask("list", path, [&] { return m_owner.list_in(m_inner, path); });
    }
    Result<std::optional<FileInfo>> info(const Path& path) final
    {
        return ask("inspect", path, [&] { return m_owner.info_in(m_inner, path); });
    }
    Result<void> touch(const Path& path) final
    {
        return ask("touch", path, [&] { return m_owner.touch_in(m_inner, path); });
    }
    Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) final
    {
        return ask("lock", path, [&] { return m_owner.try_lock_in(m_inner, path, mode); });
    }
    Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path& path, std::optional<std::uint32_t> mode) final
    {
        return ask("open locks", path, [&] { return m_owner.open_byte_locks_in(m_inner, path, mode); });
    }
    Result<std::uint64_t> disk_bytes(const Path& folder) final
    {
        return ask("inspect the disk", folder, [&] { return m_owner.disk_bytes_in(m_inner, folder); });
    }

private:
    template <class Operation>
    auto ask(const char* name, const Path& path, const Operation& operation) -> decltype(operation())
    {
        if (auto failed = m_owner.before(name, path)) return std::unexpected(std::move(*failed));
        return operation();
    }

    Owner& m_owner;
    FileSystem& m_inner;
};

/// Forwards every operation to another FileSystem: a base for classes that change single operations. An override also
/// applies in opened folders: `inner` is then the opened folder, else the file system.
class ForwardingFileSystem : public ForwardingFiles<ForwardingFileSystem> {
public:
    explicit ForwardingFileSystem(FileSystem& inner = posix_file_system()) : ForwardingFiles(*this, inner) {}

protected:
    /// Called with the name of each operation before it. If this returns an error, the operation is not done and fails
    /// with this error.
    virtual std::optional<Error> before(const char* /*operation*/, const Path& /*path*/) { return std::nullopt; }

    virtual Result<std::unique_ptr<FileSystem>> open_folder_in(FileSystem& inner, const Path& path, Admission admits)
    {
        auto folder = inner.open_folder(path, std::move(admits));
        if (!folder) return folder;
        return std::make_unique<Folder>(*this, std::move(*folder));
    }
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
    friend class ForwardingFiles<ForwardingFileSystem>;
    struct OpenFolder {
        std::unique_ptr<FileSystem> folder;
    };
    class Folder final : private OpenFolder, public ForwardingFiles<ForwardingFileSystem> {
    public:
        Folder(ForwardingFileSystem& owner, std::unique_ptr<FileSystem> opened)
            : OpenFolder{std::move(opened)}, ForwardingFiles(owner, *folder)
        {
        }
    };
};

class FaultyFileSystem final : public ForwardingFileSystem {
public:
    enum class Lasts { once, for_ever };
    /// A failing write_new leaves nothing, like the real one, or half of the file, like a process that dies.
    enum class Leaves { nothing, half_a_file };

    explicit FaultyFileSystem(FileSystem& inner = posix_file_system()) : ForwardingFileSystem(inner) {}

    /// Makes the `nth` operation from now on fail (1 is the next one). The count starts again.
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
    [[nodiscard]] std::uint64_t injected() const noexcept { return m_injected; }     ///< faults since fail_at

    /// Makes all later operations with this name ("lock", "write", ...) fail, and no others. With "" this ends.
    void fail_all(std::string operation, ErrorCode code)
    {
        stop_failing();
        const std::scoped_lock guard(m_mutex);
        m_operation = std::move(operation);
        m_code = code;
    }

protected:
    std::optional<Error> before(const char* operation, const Path& path) override
    {
        if (std::string_view{operation} == "write") return std::nullopt; // write_new_in() lets a write fail
        const auto failed = next(operation, path);
        return failed ? std::optional(failed->first) : std::nullopt;
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

private:
    /// The error with which this operation must fail, if any, and what a failing write must leave.
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
    std::string m_operation; ///< the name of the operations that fail; "": the nth operation fails
    ErrorCode m_code = ErrorCode::io_failed;
    Lasts m_lasts = Lasts::once;
    Leaves m_leaves = Leaves::nothing;
    std::atomic<std::uint64_t> m_operations = 0;
    std::atomic<std::uint64_t> m_injected = 0;
};

} // namespace warmgraph::test
