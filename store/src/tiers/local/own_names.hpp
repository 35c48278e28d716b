// The names of the library's own files in a cache folder. A file with any other name is foreign: it is neither changed
// nor removed, even in a marked folder.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace warmgraph::store {

inline constexpr std::size_t k_uuid_bytes = 36; ///< length of a UUID as text (RFC 4122)

/// The number of folders from the root down to a function: model_info, rank, function.
inline constexpr std::size_t k_key_levels = 3;

/// Whether a folder at this level (0 to 2) may be part of a function's key:
/// <model>_<static|dynamic>_<cl|cuda>graphcache_<12 hex digits>, a rank as in cachefmt::folder_name(), a function.
[[nodiscard]] bool is_key_folder(std::size_t level, std::string_view name);

/// True for ".lock-" and 16 hex digits.
[[nodiscard]] bool is_record_lock(std::string_view name) noexcept;
/// True for 8-4-4-4-12 hex digits in lower case, like random_uuid() and the kernel write them.
[[nodiscard]] bool is_uuid(std::string_view text) noexcept;
/// True for a file in quarantine or the reason beside it: <uuid>-<name of the entry, image or artifact>[.reason].
[[nodiscard]] bool is_quarantined(std::string_view name);
[[nodiscard]] bool is_reason(std::string_view name) noexcept;

/// Whether the library makes a file with this name in this place. `names`: from the root down to the file's own.
[[nodiscard]] bool is_own_file(const std::vector<std::string>& names);

} // namespace warmgraph::store
