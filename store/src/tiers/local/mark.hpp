// The mark of a cache folder: a CACHEDIR.TAG (https://bford.info/cachedir/) that names warmgraph. Backup programs leave a
// folder with this file out, and the library changes files only where it is.
//
// The mark is written once: when the library makes the folder, or takes an existing folder that is empty. An empty folder
// holds nothing of anybody's, and `mkdir` before the first run, a mounted volume and mkdtemp() must work. A folder that
// holds anything else and has no mark may be somebody's home: it is never marked and never written to.
#pragma once

#include "tiers/local/layout.hpp"

namespace warmgraph::store {

/// The file's content: the standard's first line, then comments that name warmgraph and the entry format of the version
/// that made the folder. The format is information: a newer version goes on using the folder.
[[nodiscard]] std::string mark_text();
/// Is this such a content, of any version? Other programs write a CACHEDIR.TAG, too.
[[nodiscard]] bool is_mark(ByteView content);

enum class Ownership : std::uint8_t {
    marked,
    empty, ///< or missing, or with nothing but temporaries: a process is making it now, or died over it
    foreign,
};
// `files` is the opened folder, `root` its path for messages.
[[nodiscard]] Result<Ownership> ownership(FileSystem& files, const Path& root);

/// permission_denied where the folder is foreign, with the cure.
[[nodiscard]] Result<void> refuse_foreign(FileSystem& files, const Path& root);
/// The same, and marks the folder where it is empty. Makes it where it is missing.
[[nodiscard]] Result<void> ensure_mark(FileSystem& files, const Path& root, Modes modes);
/// False also where the file cannot be read: for work that may as well be left undone.
[[nodiscard]] bool has_mark(FileSystem& files);

} // namespace warmgraph::store
