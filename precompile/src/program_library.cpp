#include "warmgraph/precompile/program_library.hpp"

#include <set>

namespace warmgraph::precompile {
namespace {

/// At most this many stored programs are compared; reading them is faster than the compilation after the miss.
constexpr std::size_t k_most_compared = 1024;
/// In bytes of facts: enough for a program with hundreds of headers. Programs with more facts are not compared.
constexpr std::uint64_t k_compared_bytes = 128UL << 10;

bool is_same_program(const Ingredients& then, const Ingredients& now)
{
    return then.backend == now.backend && (then.source == now.source || then.program == now.program);
}

void compare(Ingredients then, const Ingredients& now, NearestProgram& nearest)
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
    return programs().find(key_of(ingredients));
}

Result<void> ProgramLibrary::put(const CompiledProgram& program) const
{
    if (auto done = programs().put(program); !done) return done;
    m_store.make_room();
    return {};
}

void ProgramLibrary::set_aside(const Ingredients& ingredients, const Error& reason) const noexcept
{
    programs().set_aside(key_of(ingredients), reason);
}

Result<NearestProgram> ProgramLibrary::nearest(const Ingredients& now) const
{
    std::set<store::Name> seen;
    NearestProgram nearest;
    for (store::Tier* const tier : m_store.tiers()) {
        if (tier->is_remote()) continue; // a list of a whole fleet's programs costs more than this explanation is worth
        const auto names = tier->list({store::ArtifactKind::compiled});
        if (!names) return std::unexpected(names.error());
        for (const store::Name& name : *names) {
            if (seen.size() == k_most_compared) return nearest;
            if (!seen.insert(name).second) continue;
            const auto found = tier->get(name, {k_compared_bytes, false});
            if (!found || !*found || !(*found)->bytes) continue; // find() reports errors of the program that is needed
            auto then = decode_ingredients(*(*found)->bytes);
            if (then && is_same_program(*then, now)) compare(std::move(*then), now, nearest);
        }
    }
    return nearest;
}

} // namespace warmgraph::precompile
