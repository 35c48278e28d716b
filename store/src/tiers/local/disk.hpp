// The opened folder: its permissions, and reads of its files.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "tiers/local/folder_trust.hpp"
#include "tiers/local/layout.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::store {

/// When work that may be left unfinished must end: at a time, or when a stop is requested.
struct TimeLimit {
    std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
    std::stop_token stop{};

    [[nodiscard]] bool is_over(const Clock& clock) const { return stop.stop_requested() || clock.steady() >= end; }
};

[[nodiscard]] inline Stamp stamp_of(const FileInfo& info) { return {info.size, info.inode, info.modified}; }

[[nodiscard]] inline Caps caps_of(const StoreOptions& options)
{
    return {options.limits, options.image_bytes, options.trust, options.packings};
}

struct Disk {
    Layout layout;
    StoreOptions options;
    Modes modes;
    FolderTrust trust;
    FileSystem& files; ///< the opened folder; paths are relative to it
    Clock& clock;

    [[nodiscard]] bool writable() const noexcept { return options.access == StoreMode::read_write; }
    [[nodiscard]] Result<void> require_writable(std::string_view doing) const;
    /// For calls that make files: permission_denied in a read-only store, and in a folder that no longer belongs to the
    /// library. Makes and marks a folder that was removed or emptied since it was opened.
    [[nodiscard]] Result<void> may_make(std::string_view doing) const;
    /// For calls that remove or move files: has the same errors, but makes nothing.
    [[nodiscard]] Result<void> may_remove(std::string_view doing) const;

    /// Reads a regular file that the store trusts (else permission_denied); nullopt: missing. `name`: the object in the
    /// file.
    [[nodiscard]] Result<std::optional<StampedBytes>> read(const Path& path, ReadLimit extent,
                                                           const Name* name = nullptr) const;

    /// Reads all entries of a function, sorted, with 22 system calls for one entry; a list and a read would take 46.
    [[nodiscard]] Result<std::vector<StampedEntry>> read_entries(const FunctionKey& function, ReadLimit extent) const;

    /// Digests in the names of a function's entry files, sorted.
    [[nodiscard]] Result<std::vector<Digest>> entries_of(const FunctionKey& function) const;
    [[nodiscard]] Result<std::vector<Name>> entry_names(const FunctionKey& function) const;
    struct Functions {
        std::vector<FunctionKey> keys; ///< sorted
        /// The error of the first folder that this user may not list, or that is not trusted
        std::optional<Error> left_out{};
        bool is_whole = true; ///< false: the time limit ended the walk
    };
    /// Leaves out empty folders, which a crash may leave behind.
    [[nodiscard]] Result<Functions> list_functions(const TimeLimit& limit = {}) const;
    /// Returns all functions; permission_denied if one of the folders may not be listed.
    [[nodiscard]] Result<std::vector<FunctionKey>> functions() const;
    [[nodiscard]] Result<std::vector<Name>> image_names() const;
    [[nodiscard]] Result<std::vector<Name>> artifact_names(ArtifactKind kind) const;
    [[nodiscard]] Result<std::vector<std::pair<Digest, std::uint64_t>>> images() const;

private:
    /// Reads a file. `path` is relative to `folder`, `shown` to the root.
    [[nodiscard]] Result<std::optional<StampedBytes>> read_in(FileSystem& folder, const Path& path, const Path& shown,
                                                              ReadLimit extent, const Name* name) const;
};

} // namespace warmgraph::store
