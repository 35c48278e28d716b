// The folder in which processes leave captures for each other. Readers check a file's contents, not only its name.
#pragma once

#include <string>
#include <vector>

#include "warmgraph/base/file_system.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph {

/// The most captures that are kept for one call. If there are more, the oldest captures are removed.
inline constexpr std::size_t k_most_captures = 4;

/// One thread at a time may use an object; several processes may use one folder.
class CaptureFolder {
public:
    /// Opens the folder; makes it if it does not exist and `makes` is true. permission_denied: other users may write
    /// the folder, or it belongs to another user. not_found: the folder does not exist and `makes` is false.
    [[nodiscard]] static Result<CaptureFolder> open(FileSystem& files, const std::string& path, bool makes);

    /// Writes the capture to a new file and returns the file's name. Errors: io_failed, no_space, permission_denied.
    [[nodiscard]] Result<std::string> write(const StoredCapture& capture);

    struct CaptureList {
        std::vector<StoredCapture> captures; ///< the newest capture first
        std::vector<std::string> ignored;    ///< "FILE: why" for each unusable file with this call's name
    };
    /// Finds other processes' captures of this call.
    [[nodiscard]] Result<CaptureList> find(const cachefmt::EntryKey& key) const;

private:
    struct File {
        std::string name;
        std::chrono::system_clock::time_point written;
    };
    explicit CaptureFolder(std::unique_ptr<FileSystem> folder) : m_folder(std::move(folder)) {}
    /// Returns the files of this call, the newest first.
    [[nodiscard]] Result<std::vector<File>> files_of(const cachefmt::EntryKey& key) const;
    [[nodiscard]] Result<StoredCapture> read(const std::string& name, const cachefmt::EntryKey& key) const;

    std::unique_ptr<FileSystem> m_folder;
};

} // namespace warmgraph
