#include "entry_head.hpp"

#include <algorithm>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::remote {

ByteView head_of_entry(ByteView entry)
{
    constexpr std::size_t k_without_header = 4 * 1024;
    const auto extent = cachefmt::header_extent(entry);
    const bool fits = extent && *extent <= k_most_head && *extent <= entry.size();
    return entry.first(std::min(entry.size(), fits ? static_cast<std::size_t>(*extent) : k_without_header));
}

bool has_header(ByteView head)
{
    const auto extent = cachefmt::header_extent(head);
    return extent && *extent <= head.size();
}

} // namespace warmgraph::remote
