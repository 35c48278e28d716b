// The compiled programs in a cache folder and its layers. Each program is verified when it is read.
//
// Thread-safe. A failure is an Error that the caller counts: it costs a compilation, but never changes a result.
#pragma once

#include <optional>
#include <vector>

#include "warmgraph/precompile/compiled_program.hpp"
#include "warmgraph/store/artifacts.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::precompile {

/// The stored program that is most similar to the wanted program.
struct NearestProgram {
    std::uint64_t variants = 0; ///< stored programs with this source or this name
    std::optional<Ingredients> ingredients{};
    std::vector<store::MissedFact> differences{}; ///< differences of the most similar program
};

struct ProgramCodec {
    using Value = CompiledProgram;
    static constexpr store::ArtifactKind k_kind = store::ArtifactKind::compiled;
    static constexpr std::uint8_t k_form = 0;
    static constexpr std::uint64_t k_most_bytes = k_compiled_cap;
    static constexpr ErrorCode k_misnamed = ErrorCode::stale;
    static constexpr store::RefusalScope k_refusing = store::RefusalScope::everywhere;

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
    /// `store` must outlive the library. Programs are signed with the key in `trust` when they are put into the folder.
    ProgramLibrary(store::LocalStore& store, cachefmt::Trust trust) : m_store(store), m_trust(std::move(trust)) {}

    /// Returns a verified program from the folder or its layers, and marks it as used now; nullopt: not found. Errors:
    /// corrupt and stale, and the program was set aside; untrusted, and the program stays.
    [[nodiscard]] Result<std::optional<CompiledProgram>> find(const Ingredients& ingredients) const;
    [[nodiscard]] Result<void> put(const CompiledProgram& program) const;
    /// Sets aside an intact program that could not be used, for `reason`.
    void set_aside(const Ingredients& ingredients, const Error& reason) const noexcept;
    /// Compares all stored programs with the wanted one, to explain a miss.
    [[nodiscard]] Result<NearestProgram> nearest(const Ingredients& ingredients) const;

private:
    [[nodiscard]] store::Artifacts<ProgramCodec> programs() const
    {
        return store::Artifacts<ProgramCodec>(m_store.tiers(), {m_trust});
    }

    store::LocalStore& m_store;
    cachefmt::Trust m_trust;
};

} // namespace warmgraph::precompile
