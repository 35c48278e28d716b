// Reads an object from several tiers: the first tier that has it intact gives it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

/// Tiers in the order in which they are read: the folder, then its layers (LocalStore::tiers). No pointer is null.
using Tiers = std::vector<Tier*>;

/// Reads from each tier in turn. `read` returns a tier's verified object, or nullopt when the tier does not have it. If
/// no tier has the object, returns the first error of a tier that failed.
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
