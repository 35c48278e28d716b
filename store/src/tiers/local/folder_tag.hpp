// The tag of a cache folder: a CACHEDIR.TAG (https://bford.info/cachedir/) that names warmgraph. Backup programs leave
// out a folder with this file. The library changes files only in a folder with the tag.
//
// The library writes the tag when it makes the folder, or opens an existing empty folder; so `mkdir` before the first
// run, a mounted volume and mkdtemp() work. A folder without the tag that holds a foreign file may be a user's home:
// it is never tagged and never written to. If all files are the library's, the tag was lost (programs that clean up by
// age remove it), and is written again.
#pragma once

#include "tiers/local/layout.hpp"

namespace warmgraph::store {

/// The file's content: the standard's first line, then comments that name warmgraph and the entry format of the version
/// that made the folder. The format is only information: a newer version can use the folder.
[[nodiscard]] std::string tag_text();
inline constexpr std::uint64_t k_tag_cap = 4096; ///< bytes of the file that are read
/// Whether this is a tag of any version of warmgraph. Other programs write a CACHEDIR.TAG, too.
[[nodiscard]] bool is_tag(ByteView content);

enum class Ownership : std::uint8_t {
    tagged,
    empty,    ///< empty, missing, or only temporaries: a process is making the folder, or died while making it
    untagged, ///< all files belong to the library, but the tag is missing
    foreign,
};
/// The cure when the library may not change a folder: "give a folder of its own, for example <folder>/warmgraph (...)".
[[nodiscard]] std::string propose_below(const Path& folder);

// `files` is the opened folder, `root` its path for messages.
[[nodiscard]] Result<Ownership> ownership(FileSystem& files, const Path& root);

/// Returns permission_denied, with the cure, if the folder is foreign.
[[nodiscard]] Result<void> refuse_foreign(FileSystem& files, const Path& root);
/// Like refuse_foreign(), but also makes a missing folder, and tags a folder that is empty or has lost its tag.
[[nodiscard]] Result<void> ensure_tag(FileSystem& files, const Path& root, Modes modes);
/// True if the folder has the tag. Also false when the tag cannot be read, so it is for optional work only.
[[nodiscard]] bool has_tag(FileSystem& files);

} // namespace warmgraph::store
