// Compiled programs in a cache folder and the layers below it: found, put, and none of them believed for its name.
//
// Thread-safe. A failure costs a compilation, never a result: it is an Error for the caller to count.
#pragma once

#include <optional>
#include <vector>

#include "warmgraph/precompile/compiled_program.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::precompile {

/// What is stored and comes closest to what is wanted.
struct Nearest {
    std::uint64_t variants = 0; ///< stored ones of this source or this name
    std::optional<Ingredients> ingredients{};
    std::vector<store::MissedFact> differences{}; ///< the fewest
};

class ProgramLibrary {
public:
    /// `store` must outlive the library. What is put is signed with the trust's key.
    ProgramLibrary(store::LocalStore& store, cachefmt::Trust trust) : m_store(store), m_trust(std::move(trust)) {}

    /// Verified, of the folder or the first layer that has a whole one, and counted as used now; nullopt: there is none.
    /// corrupt, stale: it was set aside; untrusted: it stays.
    [[nodiscard]] Result<std::optional<CompiledProgram>> find(const Ingredients& ingredients) const;
    [[nodiscard]] Result<void> put(const CompiledProgram& program) const;
    /// It is whole, and still could not be used, for `reason`.
    void set_aside(const Ingredients& ingredients, const Error& reason) const noexcept;
    /// Looks through all that are stored: for a miss.
    [[nodiscard]] Result<Nearest> nearest(const Ingredients& ingredients) const;

private:
    store::LocalStore& m_store;
    cachefmt::Trust m_trust;
};

} // namespace warmgraph::precompile
