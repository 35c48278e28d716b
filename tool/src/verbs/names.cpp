// `warmgraph names`: for shell completions.
#include "commands.hpp"
#include "selection.hpp"

namespace warmgraph::tool {

Result<int> names(const Context& context)
{
    const auto store = open_store(context);
    const auto functions = store && *store ? (*store)->functions() : std::vector<cachefmt::FunctionKey>{};
    if (!functions) return k_ok;
    for (const std::string& name : names_of(*functions)) print(name + "\n");
    return k_ok;
}

} // namespace warmgraph::tool
