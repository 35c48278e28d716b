// The opened folder: what may be done in it, and what lies where.
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

/// What tells a file from one that replaced it.
/// How long somebody goes on with work that may be left: to a time, or until somebody else wants it to stop.
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
    FileSystem& files; ///< the opened folder: paths are the layout's
    Clock& clock;

    [[nodiscard]] bool writable() const noexcept { return options.access == StoreMode::read_write; }
    [[nodiscard]] Result<void> require_writable(std::string_view doing) const;
    /// For what makes files: permission_denied in a read-only store, and in a folder that is no longer the library's. A
    /// folder that was removed or emptied since it was opened is made and marked again.
    [[nodiscard]] Result<void> may_make(std::string_view doing) const;
    /// For what removes or moves files: the same errors; makes nothing.
    [[nodiscard]] Result<void> may_remove(std::string_view doing) const;

    /// A regular file that the store trusts (else permission_denied); nullopt when there is none. `name`: whose it is.
    [[nodiscard]] Result<std::optional<Found>> read(const Path& path, Extent extent, const Name* name = nullptr) const;

    /// All entries of a function, as read() gives them, sorted: 22 system calls for one entry, where a list and a read
    /// that each walk down from the root take 46.
    [[nodiscard]] Result<std::vector<FoundEntry>> read_entries(const FunctionKey& function, Extent extent) const;

    /// Digests in the names of a function's entry files, sorted.
    [[nodiscard]] Result<std::vector<Digest>> entries_of(const FunctionKey& function) const;
    [[nodiscard]] Result<std::vector<Name>> entry_names(const FunctionKey& function) const;
    struct Functions {
        std::vector<FunctionKey> keys;   ///< sorted
        std::optional<Error> left_out{}; ///< of the first folder that this user may not list, or that is not trusted
        bool is_whole = true;            ///< false: the time was over before all were seen
    };
    /// An empty folder is no function: a crash may leave some.
    [[nodiscard]] Result<Functions> list_functions(const TimeLimit& limit = {}) const;
    /// permission_denied where one of the folders may not be listed.
    [[nodiscard]] Result<std::vector<FunctionKey>> functions() const;
    [[nodiscard]] Result<std::vector<Name>> image_names() const;
    [[nodiscard]] Result<std::vector<Name>> artifact_names(ArtifactKind kind) const;
    [[nodiscard]] Result<std::vector<std::pair<Digest, std::uint64_t>>> images() const;

private:
    /// `path` as seen from `folder`, `shown` as seen from the root.
    [[nodiscard]] Result<std::optional<Found>> read_in(FileSystem& folder, const Path& path, const Path& shown,
                                                       Extent extent, const Name* name) const;
};

} // namespace warmgraph::store
