// Reads and changes the index objects of a server (index.hpp).
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "index.hpp"
#include "objects.hpp"

namespace warmgraph::remote::http {

/// The name of a folder's index, behind the folder's prefix. The format's version is in it, so that programs with different
/// versions do not overwrite each other's.
inline constexpr std::string_view k_index_name = "index.1";

/// Thread-safe.
class FolderIndexes {
public:
    explicit FolderIndexes(const Objects& objects) noexcept : m_objects(objects) {}

    /// The folder's index; empty if it has none. `prefix` ends with a slash. corrupt: its bytes are no index.
    [[nodiscard]] Result<Index> read(const std::string& prefix, const Deadline& deadline) const;
    /// Reads the index, lets `change` change it, and writes it where `change` returns true. A damaged index is made anew. If
    /// another client changes the index at the same time and the server has ETags and conditions, tries eight times; with
    /// other servers the other client's change may be lost. The Error says why the index is as it was.
    [[nodiscard]] Result<void> change(const std::string& prefix, const std::function<bool(Index&)>& change);

private:
    struct Read {
        Result<Index> index;
        std::string condition; ///< for the put that replaces it
    };
    [[nodiscard]] Result<Read> read_for_change(const std::string& prefix) const;
    [[nodiscard]] Result<std::optional<StoredObject>> get(const std::string& prefix, const Deadline& deadline) const;

    const Objects& m_objects;
    std::mutex m_mutex; // so that this process's threads do not lose each other's changes
};

} // namespace warmgraph::remote::http
