// The facts of a function whose code this process does not have: it replays entries, and nothing else.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::guards {

/// What such a process has of its own.
struct Here {
    std::vector<cachefmt::Fact> device;          ///< Device::facts
    std::string model, function, rank;           ///< as the entry's key has them
    std::map<std::string, std::string> config{}; ///< the model's
    std::function<std::optional<std::string>(const char*)> environment;
};

/// The facts here and now of the function that `recorded` was recorded of, canonical: for evaluate_facts(). The entry's own
/// word is taken for what only the function's code could say: which code it is, its interface and its configuration.
/// Variables of the environment that it names are looked up.
[[nodiscard]] std::vector<cachefmt::Fact> facts_of_loaded(const std::vector<cachefmt::Fact>& recorded,
                                                          const Here& here);

} // namespace warmgraph::guards
