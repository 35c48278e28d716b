// Compiled programs in a cache folder and its layers. Every program is verified when it is read.
//
// Thread-safe. A failure is an Error for the caller to count: it costs a compilation, never a result.
#pragma once

#include <optional>
#include <vector>

#include "warmgraph/precompile/compiled_program.hpp"
#include "warmgraph/store/artifacts.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::precompile {

/// The stored program that is most similar to the wanted one.
struct Nearest {
    std::uint64_t variants = 0; ///< stored programs with this source or this name
    std::optional<Ingredients> ingredients{};
    std::vector<store::MissedFact> differences{}; ///< the fewest differences
};

struct ProgramCodec {
    using Value = CompiledProgram;
    static constexpr store::ArtifactKind k_kind = store::ArtifactKind::compiled;
    static constexpr std::uint8_t k_form = 0;
    static constexpr std::uint64_t k_most_bytes = k_compiled_cap;
    static constexpr ErrorCode k_misnamed = ErrorCode::stale;
    static constexpr store::Refusing k_refusing = store::Refusing::everywhere;

    [[nodiscard]] static Digest key_of(const CompiledProgram& program)
    {
        return precompile::key_of(program.ingredients);
    }
    [[nodiscard]] Result<CompiledProgram> decode(ByteView bytes) const { return precompile::decode(bytes, trust); }
    [[nodiscard]] Result<Bytes> encode(const CompiledProgram& program) const
    {
        return precompile::encode(program, trust.sign_with.get());
    }

    cachefmt::Trust trust{};
};

class ProgramLibrary {
public:
    /// `store` must outlive the library. Programs that are put are signed with the trust's key.
    ProgramLibrary(store::LocalStore& store, cachefmt::Trust trust) : m_store(store), m_trust(std::move(trust)) {}

    /// Returns a verified program from the folder or its layers, and marks it as used now; nullopt: not found. corrupt,
    /// stale: it was set aside; untrusted: it stays.
    [[nodiscard]] Result<std::optional<CompiledProgram>> find(const Ingredients& ingredients) const;
    [[nodiscard]] Result<void> put(const CompiledProgram& program) const;
    /// Sets aside an intact program that could not be used, for `reason`.
    void set_aside(const Ingredients& ingredients, const Error& reason) const noexcept;
    /// Compares all stored programs with the wanted one, to explain a miss.
    [[nodiscard]] Result<Nearest> nearest(const Ingredients& ingredients) const;

private:
    [[nodiscard]] store::Artifacts<ProgramCodec> programs() const
    {
        return store::Artifacts<ProgramCodec>(m_store.tiers(), {m_trust});
    }

    store::LocalStore& m_store;
    cachefmt::Trust m_trust;
};

} // namespace warmgraph::precompile
