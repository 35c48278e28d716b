#include "warmgraph/precompile/program_library.hpp"

#include <set>

namespace warmgraph::precompile {
namespace {

/// A miss compiles, which takes longer than reading so many; more are not looked at.
constexpr std::size_t k_most_compared = 1024;
/// Facts of a program with hundreds of headers fit; larger ones are not compared.
constexpr std::uint64_t k_compared_bytes = 128UL << 10;

store::Name name_of(const Ingredients& ingredients)
{
    return store::ArtifactName{store::ArtifactKind::compiled, key_of(ingredients)};
}

bool is_same_program(const Ingredients& then, const Ingredients& now)
{
    return then.backend == now.backend && (then.source == now.source || then.program == now.program);
}

void compare(Ingredients then, const Ingredients& now, Nearest& nearest)
{
    ++nearest.variants;
    auto different = differences(then, now);
    if (nearest.ingredients && different.size() >= nearest.differences.size()) return;
    nearest.differences = std::move(different);
    nearest.ingredients = std::move(then);
}

} // namespace

Result<std::optional<CompiledProgram>> ProgramLibrary::find(const Ingredients& ingredients) const
{
    const store::Name name = name_of(ingredients);
    return store::first_of(m_store.tiers(), [&](store::Tier& tier) -> Result<std::optional<CompiledProgram>> {
        auto found = tier.get(name, {k_compiled_cap});
        if (!found) return std::unexpected(found.error());
        if (!*found) return std::nullopt;
        auto program = (*found)->bytes ? decode(*(*found)->bytes, m_trust)
                                       : Result<CompiledProgram>{std::unexpected((*found)->bytes.error())};
        if (program && key_of(program->ingredients) != key_of(ingredients))
            program = fail(ErrorCode::stale, "it is stored under another program's name");
        if (!program) {
            const Error& error = program.error();
            if (error.code != ErrorCode::untrusted) tier.refuse(name, (*found)->stamp, error);
            return std::unexpected(error);
        }
        static_cast<void>(tier.note_use(name)); // who only reads cannot
        return std::move(*program);
    });
}

Result<void> ProgramLibrary::put(const CompiledProgram& program) const
{
    const auto bytes = encode(program, m_trust.sign_with.get());
    if (!bytes) return std::unexpected(bytes.error());
    if (auto done = m_store.tier().put(name_of(program.ingredients), *bytes); !done) return done;
    m_store.make_room();
    return {};
}

void ProgramLibrary::set_aside(const Ingredients& ingredients, const Error& reason) const noexcept
{
    const store::Name name = name_of(ingredients);
    for (store::Tier* const tier : m_store.tiers()) {
        const auto found = tier->get(name, {0, false});
        if (!found || !*found) continue;
        tier->refuse(name, (*found)->stamp, reason);
        return; // that is where find() had it from
    }
}

Result<Nearest> ProgramLibrary::nearest(const Ingredients& now) const
{
    std::set<store::Name> seen;
    Nearest nearest;
    for (store::Tier* const tier : m_store.tiers()) {
        const auto names = tier->list({store::ArtifactKind::compiled});
        if (!names) return std::unexpected(names.error());
        for (const store::Name& name : *names) {
            if (seen.size() == k_most_compared) return nearest;
            if (!seen.insert(name).second) continue;
            const auto found = tier->get(name, {k_compared_bytes, false});
            if (!found || !*found || !(*found)->bytes) continue; // find() says what is wrong with one that is wanted
            auto then = decode_ingredients(*(*found)->bytes);
            if (then && is_same_program(*then, now)) compare(std::move(*then), now, nearest);
        }
    }
    return nearest;
}

} // namespace warmgraph::precompile
