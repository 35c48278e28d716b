// Checks a count against its limit before anything of that size is built.
#pragma once

#include <string_view>

#include "warmgraph/base/error.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] inline Result<void> check_count(std::string_view what, std::uint64_t number, std::uint64_t limit)
{
    if (number > limit) return fail(ErrorCode::corrupt, "{} {} are over the limit of {}", number, what, limit);
    return {};
}

} // namespace warmgraph::cachefmt
