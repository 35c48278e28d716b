// One object out of several tiers: the first that has it whole gives it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

/// In the order in which they are asked: the folder, then the layers below it (LocalStore::tiers). None is null.
using Tiers = std::vector<Tier*>;

/// `read` gives a tier's object, verified: nullopt, where it has none. An Error of one tier is that of all where no
/// other has the object.
template <class Read>
[[nodiscard]] auto first_of(const Tiers& tiers, const Read& read) -> decltype(read(std::declval<Tier&>()))
{
    decltype(read(std::declval<Tier&>())) first = std::nullopt;
    for (Tier* const tier : tiers) {
        auto found = read(*tier);
        if (found && *found) return found;
        if (first && !found) first = std::move(found);
    }
    return first;
}

} // namespace warmgraph::store
