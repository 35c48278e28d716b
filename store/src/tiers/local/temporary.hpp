// Temporaries: files being written, named after their writer so that others can tell whether it still lives.
#pragma once

#include <string>
#include <string_view>

#include "tiers/local/layout.hpp"

namespace warmgraph::store {

inline constexpr std::string_view k_temporary_prefix = ".tmp-";

/// "<host>.<namespace>-<boot>", where process ids mean this process's neighbours: never changes in a process, nor in its
/// forks.
[[nodiscard]] const std::string& writer_place();
/// Exactly such a text, of anybody.
[[nodiscard]] bool is_writer_place(std::string_view text) noexcept;

/// ".tmp-<host>-<boot>-<pid>-<uuid>". `host` is the machine's name and the number of the process-id namespace: two
/// containers of one machine may share name and boot, and then one's process id says nothing to the other.
[[nodiscard]] std::string temporary_name();

/// Exactly such a name. Files that others begin with ".tmp-" are no temporaries of the library.
[[nodiscard]] bool is_temporary(std::string_view name) noexcept;

/// Is its writer gone? REQUIRES: is_temporary(name). Older than a day: yes. Same host and boot: when there is no such process.
[[nodiscard]] bool is_abandoned(std::string_view name, std::chrono::system_clock::time_point modified,
                                std::chrono::system_clock::time_point now);

/// Removes abandoned temporaries from one folder; returns how many went. Best effort: what cannot be removed stays for the
/// next time.
std::uint64_t remove_abandoned(FileSystem& files, Clock& clock, const Path& folder);

/// Removes a lock file that nobody holds; returns whether it went. Best effort, too.
bool remove_free_lock(FileSystem& files, Modes modes, const Path& path);

} // namespace warmgraph::store
