#include "warmgraph/autotune/library.hpp"

namespace warmgraph::autotune {
namespace {

store::Name config_name(const Digest& key) { return store::ArtifactName{store::ArtifactKind::tuned, key}; }
store::Name module_name(const Digest& key)
{
    return store::ArtifactName{store::ArtifactKind::tuned, key, store::k_module_form};
}

/// What the tiers have under a name, decoded and held to its key.
template <class Decode>
auto read(const store::Tiers& tiers, const store::Name& name, std::uint64_t most, const Digest& key,
          const Decode& decode) -> Result<std::optional<typename decltype(decode(ByteView{}))::value_type>>
{
    using Value = typename decltype(decode(ByteView{}))::value_type;
    return store::first_of(tiers, [&](store::Tier& tier) -> Result<std::optional<Value>> {
        const auto found = tier.get(name, {most});
        if (!found) return std::unexpected(found.error());
        if (!*found) return std::nullopt;
        auto value = (*found)->bytes ? decode(*(*found)->bytes) : std::unexpected((*found)->bytes.error());
        if (value && value->key != key)
            value =
                fail(ErrorCode::stale, "it is stored under {}, and is of {}", short_hex(key), short_hex(value->key));
        if (value) {
            static_cast<void>(tier.note_use(name)); // who only reads cannot
            return std::move(*value);
        }
        // The first tier's is replaced by the next put(), which no other can be.
        if (&tier != tiers.front()) tier.refuse(name, (*found)->stamp, value.error());
        return std::unexpected(std::move(value.error()));
    });
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
    return read(m_tiers, config_name(key), k_best_config_cap, key, decode);
}

Result<void> Library::put(const BestConfig& best)
{
    return write(*m_tiers.front(), config_name(best.key), encode(best), k_best_config_cap);
}

Result<void> Library::remove(const Digest& key)
{
    const store::Name name = config_name(key);
    for (std::size_t i = 1; i < m_tiers.size(); ++i)
        m_tiers[i]->refuse(name, {}, {ErrorCode::stale, "this process removed it"});
    return m_tiers.front()->remove(name);
}

Result<std::optional<ModuleConfigs>> Library::find_module(const Digest& key) const
{
    return read(m_tiers, module_name(key), k_module_cap, key, decode_module);
}

Result<void> Library::put_module(const ModuleConfigs& module)
{
    return write(*m_tiers.front(), module_name(module.key), encode(module), k_module_cap);
}

} // namespace warmgraph::autotune
