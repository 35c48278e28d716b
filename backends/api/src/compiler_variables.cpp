#include "warmgraph/backends/compiler_variables.hpp"

#include <string>

#include "warmgraph/base/process.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::backends {

void add_compiler_variables(std::vector<cachefmt::Fact>& facts, std::span<const char* const> names)
{
    for (const char* name : names)
        if (auto value = environment(name); value && !value->empty())
            facts.push_back(
                {std::string(cachefmt::fact::k_environment) + name, std::move(*value), cachefmt::Role::must_match});
}

} // namespace warmgraph::backends
