#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::cachefmt {

std::string_view to_string(Role role) noexcept
{
    switch (role) {
    case Role::must_match: return "must_match";
    case Role::identity: return "identity";
    case Role::advisory: return "advisory";
    }
    return "unknown";
}

std::string fact_text(std::string_view value) { return value == k_unknown ? "unknown" : printable(value); }

} // namespace warmgraph::cachefmt
