#include "warmgraph/guards/loaded_facts.hpp"

#include <algorithm>

#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/guards/interface_text.hpp"

namespace warmgraph::guards {

namespace fact = cachefmt::fact;

std::vector<Fact> facts_of_loaded(const std::vector<Fact>& recorded, const ProcessFacts& here)
{
    std::vector<Fact> facts = here.device;
    facts.push_back({std::string(fact::k_format), std::to_string(cachefmt::k_format_version), Role::must_match});
    facts.push_back({std::string(fact::k_model), here.model, Role::identity});
    facts.push_back({std::string(fact::k_function), here.function, Role::identity});
    facts.push_back({std::string(fact::k_rank), here.rank, Role::identity});
    for (const auto& [name, value] : here.config)
        facts.push_back({std::string(fact::k_model_config) + name, value, Role::must_match});
    const auto is_known = [&, known = facts.size()](const std::string& name) {
        return std::ranges::find(facts.begin(), facts.begin() + static_cast<std::ptrdiff_t>(known), name,
                                 &Fact::name) != facts.begin() + static_cast<std::ptrdiff_t>(known);
    };
    for (const Fact& own : recorded) {
        if (is_known(own.name)) continue; // this process knows the fact itself
        if (own.name.starts_with(fact::k_environment)) {
            const std::string variable = own.name.substr(fact::k_environment.size());
            facts.push_back(
                {own.name, here.environment(variable.c_str()).value_or(std::string(fact::k_unset)), own.role});
        } else if (own.name == k_interface_fact || fact::is_of_code(own.name) || own.name.starts_with(fact::k_config)) {
            facts.push_back(own);
        }
    }
    canonicalize(facts);
    return facts;
}

} // namespace warmgraph::guards
