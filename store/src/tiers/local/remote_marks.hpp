// Marks in the cache folder about objects of a remote. A mark is the file "remotes/<16 hex digits of the remote>.<mark>.<64 hex
// digits of the object's name>", whose text is the name (to_text). Each is written and removed alone, so a crash leaves true
// marks: an object that is sent and still marked is only sent again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tiers/local/disk.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::store {

inline constexpr std::string_view k_remotes = "remotes"; ///< the folder
[[nodiscard]] bool is_remote_mark(std::string_view name);

[[nodiscard]] Result<void> set_mark(const Disk& disk, std::string_view remote, RemoteMark mark,
                                    const std::string& name);
[[nodiscard]] Result<void> clear_mark(const Disk& disk, std::string_view remote, RemoteMark mark,
                                      const std::string& name);
[[nodiscard]] Result<std::vector<std::string>> marks(const Disk& disk, std::string_view remote, RemoteMark mark);

} // namespace warmgraph::store
