#include "tiers/local/layout.hpp"

namespace warmgraph::store {
namespace {

constexpr std::size_t k_shard_digits = 2;

} // namespace

Path Layout::image(const Digest& digest) const
{
    const std::string hex = to_hex(digest);
    return images() / hex.substr(0, k_shard_digits) / hex;
}

Path Layout::path(const Name& name) const
{
    if (const auto* key = std::get_if<EntryKey>(&name)) return entry(*key);
    if (const auto* artifact = std::get_if<ArtifactName>(&name)) return Layout::artifact(*artifact);
    return image(std::get<ImageName>(name).digest);
}

Path Layout::artifact(const ArtifactName& name)
{
    const std::string file = file_name(name);
    return artifacts(name.kind) / file.substr(0, k_shard_digits) / file;
}

Path Layout::artifact_lock(const ArtifactName& name)
{
    const std::string hex = to_hex(name.digest);
    return artifact(name).parent_path() / (std::string(k_lock_prefix) + hex.substr(0, k_lock_digits));
}

Path Layout::record_lock(const EntryKey& key) const
{
    return function(key.function) / (std::string(k_lock_prefix) + to_hex(key.guards_digest).substr(0, k_lock_digits));
}

std::optional<Digest> Layout::entry_digest(std::string_view name)
{
    if (!name.ends_with(k_entry_suffix)) return std::nullopt;
    return digest_from_our_hex(name.substr(0, name.size() - k_entry_suffix.size()));
}

std::optional<Digest> Layout::image_digest(std::string_view shard, std::string_view name)
{
    return shard.size() == k_shard_digits && name.starts_with(shard) ? digest_from_our_hex(name) : std::nullopt;
}

std::optional<ArtifactName> Layout::artifact_name(const Path& top, std::string_view shard, std::string_view name)
{
    if (shard.size() != k_shard_digits || !name.starts_with(shard)) return std::nullopt;
    const auto artifact = artifact_from_file_name(name);
    return artifact && top == artifacts(artifact->kind) ? artifact : std::nullopt;
}

} // namespace warmgraph::store
