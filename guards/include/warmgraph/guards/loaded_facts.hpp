// The facts of a function whose code this process does not have, because the process only replays entries.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::guards {

/// The facts that a process without the function's code knows itself.
struct ProcessFacts {
    std::vector<cachefmt::Fact> device;          ///< as Device::facts
    std::string model, function, rank;           ///< as in the entry's key
    std::map<std::string, std::string> config{}; ///< the model's configuration
    std::function<std::optional<std::string>(const char*)> environment;
};

/// Returns the present facts of the function that `recorded` belongs to, canonical, for evaluate_facts(). Facts that
/// only the function's code could give (the code's identity, interface, configuration) are copied from the entry. Reads
/// the environment variables that the entry names.
[[nodiscard]] std::vector<cachefmt::Fact> facts_of_loaded(const std::vector<cachefmt::Fact>& recorded,
                                                          const ProcessFacts& here);

} // namespace warmgraph::guards
