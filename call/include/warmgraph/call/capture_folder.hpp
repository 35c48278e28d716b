// The folder in which processes leave captures for each other. Readers check a file's contents, not only its name.
#pragma once

#include <string>
#include <vector>

#include "warmgraph/base/file_system.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph {

/// The most captures that are kept for one call; the oldest are removed.
inline constexpr std::size_t k_most_captures = 4;

/// Used by one thread at a time; several processes may use one folder.
class CaptureFolder {
public:
    /// permission_denied: others may write the folder, or it belongs to another user. not_found: there is no folder and
    /// `makes` is false; otherwise the folder is made.
    [[nodiscard]] static Result<CaptureFolder> open(FileSystem& files, const std::string& path, bool makes);

    /// Returns the file's name. Errors: io_failed, no_space, permission_denied.
    [[nodiscard]] Result<std::string> write(const StoredCapture& capture);

    struct Found {
        std::vector<StoredCapture> captures; ///< newest first
        std::vector<std::string> ignored;    ///< "FILE: why", for files with this call's name
    };
    /// Finds other processes' captures of this call.
    [[nodiscard]] Result<Found> find(const cachefmt::EntryKey& key) const;

private:
    struct File {
        std::string name;
        std::chrono::system_clock::time_point written;
    };
    explicit CaptureFolder(std::unique_ptr<FileSystem> folder) : m_folder(std::move(folder)) {}
    /// This call's files by name, newest first.
    [[nodiscard]] Result<std::vector<File>> files_of(const cachefmt::EntryKey& key) const;
    [[nodiscard]] Result<StoredCapture> read(const std::string& name, const cachefmt::EntryKey& key) const;

    std::unique_ptr<FileSystem> m_folder;
};

} // namespace warmgraph
