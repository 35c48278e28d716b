// The paths and modes of all files in the cache folder. Pure: touches no disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/store/artifact_kind.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::store {

using Path = std::filesystem::path;

inline constexpr std::string_view k_entry_suffix = ".wg";
inline constexpr std::string_view k_usage_file = "usage.json";
inline constexpr std::string_view k_miss_file = "misses.jsonl";
inline constexpr std::string_view k_usage_lock = ".usage.lock";
inline constexpr std::string_view k_lock_prefix = ".lock-";
inline constexpr std::size_t k_lock_digits = 16; ///< digits of the guards' digest behind the prefix
inline constexpr std::string_view k_reason_suffix = ".reason";
inline constexpr std::string_view k_leases_file = ".leases";    ///< locks of the entries in use, see leases.hpp
inline constexpr std::string_view k_prune_lock = ".prune.lock"; ///< only one process makes room at a time
inline constexpr std::string_view k_tag_file = "CACHEDIR.TAG";

struct Modes {
    std::uint32_t folder;
    std::uint32_t file;
};
[[nodiscard]] constexpr Modes modes_of(Sharing sharing) noexcept
{
    return sharing == Sharing::group ? Modes{02770, 0660} : Modes{0700, 0600};
}

/// Paths are relative to the opened folder; "" is the folder itself.
class Layout {
public:
    explicit Layout(Path root) : m_root(std::move(root)) {}

    [[nodiscard]] const Path& root() const noexcept { return m_root; } ///< absolute, for messages
    [[nodiscard]] static Path images() { return row_of(ArtifactKind::images).folder; }
    [[nodiscard]] static Path quarantine() { return "quarantine"; }
    /// REQUIRES, here and in the calls below that take a kind: the kind has files.
    [[nodiscard]] static Path artifacts(ArtifactKind kind) { return row_of(kind).folder; }
    [[nodiscard]] static Path artifact(const ArtifactName& name);
    [[nodiscard]] Path image(const Digest& digest) const;
    /// REQUIRES: check_key holds, here and below.
    [[nodiscard]] Path function(const FunctionKey& key) const { return Path(key.model_info) / key.rank / key.function; }
    [[nodiscard]] Path entry(const EntryKey& key) const
    {
        return function(key.function) / entry_name(key.guards_digest);
    }
    [[nodiscard]] Path path(const Name& name) const;
    [[nodiscard]] Path record_lock(const EntryKey& key) const;
    /// The lock's file: beside the artifact, and named like the lock of a recording.
    [[nodiscard]] static Path artifact_lock(const ArtifactName& name);
    [[nodiscard]] static std::string entry_name(const Digest& guards)
    {
        return to_hex(guards) + std::string(k_entry_suffix);
    }
    /// The guards digest in an entry's file name; nullopt for any other name.
    [[nodiscard]] static std::optional<Digest> entry_digest(std::string_view name);
    /// The digest in an image's file name inside the folder `shard`.
    [[nodiscard]] static std::optional<Digest> image_digest(std::string_view shard, std::string_view name);
    /// Like image_digest(), for an artifact; nullopt for artifacts of kinds with another folder than `top`.
    [[nodiscard]] static std::optional<ArtifactName> artifact_name(const Path& top, std::string_view shard,
                                                                   std::string_view name);

private:
    Path m_root;
};

} // namespace warmgraph::store
