// Artifacts of one kind and form, in tiers: found, put and removed, and none of them believed for its name.
//
// Thread-safe where the tiers are. A failure costs what the artifact would have saved, never a result: it is an Error for
// the caller to count.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "warmgraph/base/log.hpp"
#include "warmgraph/store/layered.hpp"

namespace warmgraph::store {

/// Where an object that cannot be used is refused to its tier.
enum class Refusing : std::uint8_t {
    everywhere,  ///< unless it is `untrusted`
    below_first, ///< the first tier's is replaced by the next put(), which no other can be
};

/// `Codec` says what the bytes mean. It is copied, and has:
///   using Value = ...;
///   static constexpr ArtifactKind k_kind; static constexpr std::uint8_t k_form; static constexpr std::uint64_t k_most_bytes;
///   static constexpr ErrorCode k_misnamed;   of an object under another one's name
///   static constexpr Refusing k_refusing;
///   static Digest key_of(const Value& value);
///   Result<Value> decode(ByteView bytes) const;
///   Result<Bytes> encode(const Value& value) const;
template <class Codec>
class Artifacts {
public:
    using Value = typename Codec::Value;

    /// `tier` must outlive it.
    explicit Artifacts(Tier& tier, Codec codec = {}) : Artifacts(Tiers{&tier}, std::move(codec)) {}
    /// The first is written, those below it are only read: what the first does not have, or not whole, is looked for there.
    /// REQUIRES: there is a first. They outlive it.
    explicit Artifacts(Tiers tiers, Codec codec = {}) : m_tiers(std::move(tiers)), m_codec(std::move(codec)) {}

    [[nodiscard]] const Tiers& tiers() const noexcept { return m_tiers; }
    [[nodiscard]] static ArtifactName name_of(const Digest& key) noexcept
    {
        return {Codec::k_kind, key, Codec::k_form};
    }

    /// The first whole one, counted as used now; nullopt: there is none. corrupt and stale: it is a miss, and the next
    /// put() replaces it.
    [[nodiscard]] Result<std::optional<Value>> find(const Digest& key) const
    {
        return first_of(m_tiers, [&](Tier& tier) { return find_in(tier, key); });
    }
    /// Of one of the tiers.
    [[nodiscard]] Result<std::optional<Value>> find_in(Tier& tier, const Digest& key) const
    {
        const Name name = name_of(key);
        auto found = tier.get(name, {Codec::k_most_bytes});
        if (!found) return std::unexpected(found.error());
        if (!*found) return std::nullopt;
        auto& [stamp, bytes] = **found;
        Result<Value> value = bytes ? m_codec.decode(*bytes) : std::unexpected(bytes.error());
        if (value && Codec::key_of(*value) != key)
            value = fail(Codec::k_misnamed, "it is stored under {}, but it belongs to {}", short_hex(key),
                         short_hex(Codec::key_of(*value)));
        if (value) {
            static_cast<void>(tier.note_use(name)); // who only reads cannot
            return std::move(*value);
        }
        const bool is_refused = Codec::k_refusing == Refusing::everywhere ? value.error().code != ErrorCode::untrusted
                                                                          : &tier != m_tiers.front();
        if (is_refused) tier.refuse(name, stamp, value.error());
        return std::unexpected(std::move(value.error()));
    }
    /// Into the first tier. unsupported: over the cap.
    [[nodiscard]] Result<void> put(const Value& value) const
    {
        const Result<Bytes> bytes = m_codec.encode(value);
        if (!bytes) return std::unexpected(bytes.error());
        if (bytes->size() > Codec::k_most_bytes)
            return fail(ErrorCode::unsupported, "it has {} bytes, expected at most {}", bytes->size(),
                        Codec::k_most_bytes);
        return m_tiers.front()->put(name_of(Codec::key_of(value)), *bytes);
    }
    /// From the first tier. Those below do not give it any more in this process.
    [[nodiscard]] Result<void> remove(const Digest& key) const
    {
        for (std::size_t i = 1; i < m_tiers.size(); ++i)
            m_tiers[i]->refuse(name_of(key), {}, {ErrorCode::stale, "this process removed it"});
        return m_tiers.front()->remove(name_of(key));
    }
    /// What find() gave is whole, and still could not be used, for `reason`: refused to the tier that gave it. Best effort.
    void set_aside(const Digest& key, const Error& reason) const noexcept
    try {
        for (Tier* const tier : m_tiers) {
            const auto found = tier->get(name_of(key), {0, false});
            if (!found || !*found) continue;
            tier->refuse(name_of(key), (*found)->stamp, reason);
            return;
        }
    } catch (const std::exception& error) {
        log().debug("cannot move it to quarantine: {}", error.what());
    }

private:
    Tiers m_tiers;
    Codec m_codec;
};

} // namespace warmgraph::store
