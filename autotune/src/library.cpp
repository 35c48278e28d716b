#include "warmgraph/autotune/library.hpp"

namespace warmgraph::autotune {
namespace {

store::Name config_name(const Digest& key) { return store::ArtifactName{store::ArtifactKind::best_config, key}; }
store::Name module_name(const Digest& key) { return store::ArtifactName{store::ArtifactKind::module_configs, key}; }

/// What the tier has under a name, decoded and held to its key.
template <class Decode>
auto read(store::Tier& tier, const store::Name& name, std::uint64_t most, const Digest& key, const Decode& decode)
    -> Result<std::optional<typename decltype(decode(ByteView{}))::value_type>>
{
    const auto found = tier.get(name, {most});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (!(*found)->bytes) return std::unexpected((*found)->bytes.error());
    auto value = decode(*(*found)->bytes);
    if (!value) return std::unexpected(value.error());
    if (value->key != key)
        return fail(ErrorCode::stale, "it is stored under {}, and is of {}", short_hex(key), short_hex(value->key));
    return std::move(*value);
}

Result<void> write(store::Tier& tier, const store::Name& name, const std::string& text, std::uint64_t most)
{
    if (text.size() > most)
        return fail(ErrorCode::unsupported, "it takes {} bytes, at most {} are stored", text.size(), most);
    return tier.put(name, as_bytes(text));
}

} // namespace

Result<std::optional<BestConfig>> Library::find(const Digest& key) const
{
    return read(m_tier, config_name(key), k_best_config_cap, key, decode);
}

Result<void> Library::put(const BestConfig& best)
{
    return write(m_tier, config_name(best.key), encode(best), k_best_config_cap);
}

Result<void> Library::remove(const Digest& key) { return m_tier.remove(config_name(key)); }

Result<std::optional<ModuleConfigs>> Library::find_module(const Digest& key) const
{
    return read(m_tier, module_name(key), k_module_cap, key, decode_module);
}

Result<void> Library::put_module(const ModuleConfigs& module)
{
    return write(m_tier, module_name(module.key), encode(module), k_module_cap);
}

} // namespace warmgraph::autotune
