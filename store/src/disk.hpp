// The opened folder: where things lie, how they may be touched, and reading them with a verdict.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <unistd.h>

#include "layout.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::store {

/// A file and the verdict on it. An I/O failure is no verdict: it is the error around this.
template <class T>
struct Judged {
    FileInfo info;     ///< from before it was read: quarantine() moves only this very file
    Result<T> content; ///< `corrupt` or `stale` when it must not be used
    enum class Fate : std::uint8_t { set_aside, leave } fate = Fate::set_aside; ///< of a refused file
};

/// How somebody came to an entry's file. A key has the format in its guards, so that no other format is under its
/// name; who lists a folder may find a newer warmgraph's, which stay. Trust is asked of what is used, not of what is
/// looked at.
enum class Asked : std::uint8_t { by_key, by_name };

struct Disk {
    Layout layout;
    StoreOptions options;
    Modes modes;
    FileSystem& files;
    Clock& clock;

    [[nodiscard]] bool writable() const noexcept { return options.access == Access::read_write; }
    /// For what makes files: permission_denied in a read-only store, and in a folder that is no longer the library's. A
    /// folder that was removed or emptied since it was opened is made and marked again.
    [[nodiscard]] Result<void> may_make(std::string_view doing) const;
    /// For what removes or moves files: the same errors; makes nothing.
    [[nodiscard]] Result<void> may_remove(std::string_view doing) const;

    /// A regular file of at most `cap` bytes, else `corrupt`; nullopt when there is none.
    [[nodiscard]] Result<std::optional<Judged<Bytes>>> read(const Path& path, std::uint64_t cap) const;
    [[nodiscard]] Result<std::optional<Judged<Entry>>> read_entry(const EntryKey& key, Asked asked) const;
    [[nodiscard]] Result<std::optional<Judged<EntryHeader>>> read_header(const EntryKey& key, Asked asked) const;
    [[nodiscard]] Result<std::optional<Judged<Bytes>>> read_image(const Digest& digest,
                                                                  std::uint64_t size = ~0ULL) const;

    /// Digests in the names of a function's entry files, sorted.
    [[nodiscard]] Result<std::vector<Digest>> entries_of(const FunctionKey& function) const;
    /// Sorted. An empty folder is no function: a crash may leave some.
    [[nodiscard]] Result<std::vector<FunctionKey>> functions() const;
    [[nodiscard]] Result<std::vector<std::pair<Digest, std::uint64_t>>> images() const;

    /// Moves a refused file to quarantine where the store may write.
    template <class T>
    void refuse(const Path& path, const Judged<T>& judged) const
    {
        if (judged.fate == Judged<T>::Fate::set_aside) set_aside(path, judged.info, judged.content.error());
    }

private:
    [[nodiscard]] Result<void> require_writable(std::string_view doing) const;
    void set_aside(const Path& path, const FileInfo& judged, const Error& reason) const;
};

struct LocalStore::Impl {
    Disk disk;
    std::string why_read_only{};
    pid_t process = ::getpid(); ///< that opened the store
    /// Held while usage moves from `pending` to the disk and by whoever asks for both, so that nothing is between them
    /// unseen. Taken before usage_mutex; never by add_usage_soon, which waits for no disk.
    std::mutex usage_file_mutex{};
    std::mutex usage_mutex{};
    std::map<FunctionKey, FunctionUsage> pending{}; ///< guarded by usage_mutex: usage that is not on disk yet
    std::condition_variable_any usage_noted{};      ///< with usage_mutex
    bool write_soon = false;                        ///< guarded by usage_mutex: work for the thread below
    bool is_exiting = false;                        ///< guarded by usage_mutex: the process is; no thread any more
    std::jthread usage_writer{};                    ///< made by the first add_usage_soon; ends before what it uses
    std::optional<ExitHook> end_usage_writer{};     ///< made with it

    /// Merges into `pending`. REQUIRES: usage_mutex is held.
    void note_usage(const FunctionKey& function, const FunctionUsage& more);
    /// Returns for how many functions another writer was in the way. REQUIRES: neither mutex is held.
    std::size_t write_pending();
    /// REQUIRES: usage_mutex is held.
    void start_usage_writer();
    /// Ends the writer thread and writes what it left.
    void end_usage() noexcept;
    /// The writer thread's loop.
    void run_usage_writer(const std::stop_token& stop) noexcept;
};

} // namespace warmgraph::store
