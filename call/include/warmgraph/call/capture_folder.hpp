// The folder where processes leave captures for each other: a file each, read by its content and never by its name alone.
#pragma once

#include <string>
#include <vector>

#include "warmgraph/base/file_system.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph {

/// At most as many of one call are kept: the oldest go.
inline constexpr std::size_t k_most_captures = 4;

/// Used by one thread at a time; several processes may use one folder.
class CaptureFolder {
public:
    /// permission_denied where others may write the folder, or it is somebody else's. With `makes` it is made where there
    /// is none, else that is not_found.
    [[nodiscard]] static Result<CaptureFolder> open(FileSystem& files, const std::string& path, bool makes);

    /// Returns the file's name. Errors: io_failed, no_space, permission_denied.
    [[nodiscard]] Result<std::string> write(const StoredCapture& capture);

    struct Found {
        std::vector<StoredCapture> captures; ///< newest first
        std::vector<std::string> ignored;    ///< "FILE: why", of files that have this call's name
    };
    /// What other processes captured of this call.
    [[nodiscard]] Result<Found> find(const cachefmt::EntryKey& key) const;

private:
    struct File {
        std::string name;
        std::chrono::system_clock::time_point written;
    };
    explicit CaptureFolder(std::unique_ptr<FileSystem> folder) : m_folder(std::move(folder)) {}
    /// Of this call by their names, newest first.
    [[nodiscard]] Result<std::vector<File>> files_of(const cachefmt::EntryKey& key) const;
    [[nodiscard]] Result<StoredCapture> read(const std::string& name, const cachefmt::EntryKey& key) const;

    std::unique_ptr<FileSystem> m_folder;
};

} // namespace warmgraph
