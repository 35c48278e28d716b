#include "validate_symbol.hpp"

#include <algorithm>

namespace warmgraph::cachefmt {

Result<void> validate_symbol(std::string_view what, std::string_view name, std::size_t longest)
{
    if (name.empty() || name.size() > longest)
        return fail(ErrorCode::corrupt, "{} has {} bytes, expected 1 to {}", what, name.size(), longest);
    if (!std::ranges::all_of(name, [](char c) { return c >= 0x20 && c < 0x7F; }))
        return fail(ErrorCode::corrupt, "{} has unprintable bytes", what);
    return {};
}

} // namespace warmgraph::cachefmt
