// The parts of a graph that count when graphs are compared and stored.
#pragma once

#include <algorithm>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// The image's origin (source and options) if known, else its digest. Size and label do not count: two builds of one
/// source may differ in both.
[[nodiscard]] inline const Digest& identity_of(const ImageRef& image) noexcept
{
    return image.origin == Digest{} ? image.digest : image.origin;
}

/// Returns the value with zeros under its slots. Every replay overwrites those bytes (a position, an address), so they
/// are neither stored nor compared. validate() refuses slots that reach outside the value.
[[nodiscard]] inline Bytes canonical_value(Bytes value, const std::vector<Slot>& slots)
{
    for (const Slot& slot : slots) {
        const std::size_t begin = std::min<std::size_t>(slot.offset, value.size());
        const std::size_t end = std::min<std::size_t>(begin + slot.width, value.size());
        std::fill(value.begin() + static_cast<std::ptrdiff_t>(begin), value.begin() + static_cast<std::ptrdiff_t>(end),
                  std::byte{0});
    }
    return value;
}

[[nodiscard]] inline Bytes canonical_value(const Param& param) { return canonical_value(param.value, param.slots); }
[[nodiscard]] inline Bytes canonical_value(const Attribute& item) { return canonical_value(item.value, item.slots); }

} // namespace warmgraph::cachefmt
