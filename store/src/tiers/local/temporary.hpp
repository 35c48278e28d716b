// Temporaries: files being written, named after their writer, so that others can see whether it still lives.
#pragma once

#include <string>
#include <string_view>

#include "tiers/local/layout.hpp"

namespace warmgraph::store {

inline constexpr std::string_view k_temporary_prefix = ".tmp-";

/// Returns "<host>.<namespace>-<boot>": the place where this process's id is valid. It is constant in a process and its
/// forks.
[[nodiscard]] const std::string& writer_place();
/// Whether the text has this form.
[[nodiscard]] bool is_writer_place(std::string_view text) noexcept;

/// Returns ".tmp-<host>-<boot>-<pid>-<uuid>". `host` is the machine's name and the number of the process-id namespace:
/// two containers of one machine may have the same name and boot but different process ids.
[[nodiscard]] std::string temporary_name();

/// Whether the name has exactly this form. Other programs' files that begin with ".tmp-" do not count.
[[nodiscard]] bool is_temporary(std::string_view name) noexcept;

/// Whether the writer is dead. REQUIRES: is_temporary(name). True when the file is older than a day, or when host and
/// boot are this process's and the process id does not exist.
[[nodiscard]] bool is_abandoned(std::string_view name, std::chrono::system_clock::time_point modified,
                                std::chrono::system_clock::time_point now);

/// Removes abandoned temporaries from one folder and returns their number. Best effort: the next call tries again.
std::uint64_t remove_abandoned(FileSystem& files, Clock& clock, const Path& folder);

/// Removes a lock file that no process holds; returns whether it was removed. Best effort.
bool remove_free_lock(FileSystem& files, Modes modes, const Path& path);

} // namespace warmgraph::store
