// The mark of a cache folder: a CACHEDIR.TAG (https://bford.info/cachedir/) that names warmgraph. Backup programs leave a
// folder with this file out, and the library changes files only where it is.
//
// The mark is written when the library makes the folder, or takes an existing folder that is empty. An empty folder
// holds nothing of anybody's, and `mkdir` before the first run, a mounted volume and mkdtemp() must work. A folder without
// a mark that holds any file which is not the library's may be somebody's home: it is never marked and never written to.
// Where all files are the library's, the mark was lost (programs that clean up by age take it), and is written again.
#pragma once

#include "tiers/local/layout.hpp"

namespace warmgraph::store {

/// The file's content: the standard's first line, then comments that name warmgraph and the entry format of the version
/// that made the folder. The format is information: a newer version goes on using the folder.
[[nodiscard]] std::string mark_text();
inline constexpr std::uint64_t k_mark_cap = 4096; ///< bytes of the file that are looked at
/// Is this such a content, of any version? Other programs write a CACHEDIR.TAG, too.
[[nodiscard]] bool is_mark(ByteView content);

enum class Ownership : std::uint8_t {
    marked,
    empty,    ///< or missing, or with nothing but temporaries: a process is making it now, or died over it
    unmarked, ///< all files are the library's, and the mark is lost
    foreign,
};
/// "give a folder of its own, for example <folder>/warmgraph (...)": the cure where a folder is not the library's to change.
[[nodiscard]] std::string propose_below(const Path& folder);

// `files` is the opened folder, `root` its path for messages.
[[nodiscard]] Result<Ownership> ownership(FileSystem& files, const Path& root);

/// permission_denied where the folder is foreign, with the cure.
[[nodiscard]] Result<void> refuse_foreign(FileSystem& files, const Path& root);
/// The same, and marks the folder where it is empty or has lost its mark. Makes it where it is missing.
[[nodiscard]] Result<void> ensure_mark(FileSystem& files, const Path& root, Modes modes);
/// False also where the file cannot be read: for work that may as well be left undone.
[[nodiscard]] bool has_mark(FileSystem& files);

} // namespace warmgraph::store
