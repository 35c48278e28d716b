// Finds, puts and removes the artifacts of one kind and form in tiers. Every artifact is verified when it is read.
//
// Thread-safe where the tiers are. A failure is an Error for the caller to count: it costs time, never a result.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "warmgraph/base/log.hpp"
#include "warmgraph/store/layered.hpp"

namespace warmgraph::store {

/// The tiers that are asked to refuse an object that cannot be used.
enum class RefusalScope : std::uint8_t {
    everywhere,  ///< every tier, unless the object is `untrusted`
    below_first, ///< every tier but the first: the next put() replaces the first tier's object
};

/// `Codec` converts between bytes and values. It is copied, and has:
///   using Value = ...;
///   static constexpr ArtifactKind k_kind; static constexpr std::uint8_t k_form; static constexpr std::uint64_t k_most_bytes;
///   static constexpr ErrorCode k_misnamed;   the error for an object that is stored under another object's name
///   static constexpr Refusing k_refusing;
///   static Digest key_of(const Value& value);
///   Result<Value> decode(ByteView bytes) const;
///   Result<Bytes> encode(const Value& value) const;
template <class Codec>
class Artifacts {
public:
    using Value = typename Codec::Value;

    /// `tier` must outlive this object.
    explicit Artifacts(Tier& tier, Codec codec = {}) : Artifacts(Tiers{&tier}, std::move(codec)) {}
    /// Only the first tier is written. The tiers below it are read for objects that the first does not have, or has
    /// damaged. REQUIRES: there is a first tier. All tiers outlive this object.
    explicit Artifacts(Tiers tiers, Codec codec = {}) : m_tiers(std::move(tiers)), m_codec(std::move(codec)) {}

    [[nodiscard]] const Tiers& tiers() const noexcept { return m_tiers; }
    [[nodiscard]] static ArtifactName name_of(const Digest& key) noexcept
    {
        return {Codec::k_kind, key, Codec::k_form};
    }

    /// Returns the first intact object and marks it as used now; nullopt: not found. The errors corrupt and stale count
    /// as a miss; the next put() replaces the object.
    [[nodiscard]] Result<std::optional<Value>> find(const Digest& key) const
    {
        return first_of(m_tiers, [&](Tier& tier) { return find_in(tier, key); });
    }
    /// Looks in one tier only.
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
            static_cast<void>(tier.note_use(name)); // fails in a read-only tier
            // A copy in the folder spares the next look-up. Profiles are joined instead, where they are written.
            if (tier.is_remote() && Codec::k_kind != ArtifactKind::profiles)
                static_cast<void>(m_tiers.front()->put(name, *bytes, PutMode::create_only));
            return std::move(*value);
        }
        const bool is_refused = Codec::k_refusing == RefusalScope::everywhere
                                    ? value.error().code != ErrorCode::untrusted
                                    : &tier != m_tiers.front();
        if (is_refused) tier.refuse(name, stamp, value.error());
        return std::unexpected(std::move(value.error()));
    }
    /// Writes to the first tier. unsupported: the object is larger than k_most_bytes.
    [[nodiscard]] Result<void> put(const Value& value) const
    {
        const Result<Bytes> bytes = m_codec.encode(value);
        if (!bytes) return std::unexpected(bytes.error());
        if (bytes->size() > Codec::k_most_bytes)
            return fail(ErrorCode::unsupported, "it has {} bytes, expected at most {}", bytes->size(),
                        Codec::k_most_bytes);
        return m_tiers.front()->put(name_of(Codec::key_of(value)), *bytes);
    }
    /// Removes the object from the first tier. In this process the tiers below it do not give the object any more.
    [[nodiscard]] Result<void> remove(const Digest& key) const
    {
        for (std::size_t i = 1; i < m_tiers.size(); ++i)
            m_tiers[i]->refuse(name_of(key), {}, {ErrorCode::stale, "this process removed it"});
        return m_tiers.front()->remove(name_of(key));
    }
    /// Makes the tier refuse an object that find() gave and that could not be used; `reason` says why. Best effort.
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
