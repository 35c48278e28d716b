#include "half.hpp"

#include <algorithm>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph {

void add_facts(const HalfContext& half, std::vector<cachefmt::Fact>& facts)
{
    facts.insert(facts.end(), half.facts.begin(), half.facts.end());
    if (half.forward) facts.push_back({cachefmt::k_forward_fact, to_hex(*half.forward), cachefmt::Role::must_match});
    guards::canonicalize(facts);
}

std::optional<Digest> forward_of(const std::vector<cachefmt::Fact>& facts)
{
    const auto forward = std::ranges::find(facts, cachefmt::k_forward_fact, &cachefmt::Fact::name);
    return forward != facts.end() ? digest_from_hex(forward->value) : std::nullopt;
}

} // namespace warmgraph
