// What counts when graphs are compared and stored, and what does not.
#pragma once

#include <algorithm>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// Its origin (source and options) where known, else its bytes' digest. Size and label do not count: two builds of one
/// source may differ in both.
[[nodiscard]] inline const Digest& identity_of(const ImageRef& image) noexcept
{
    return image.origin == Digest{} ? image.digest : image.origin;
}

/// The value with zeros under its slots: what the recording call had there (a position, an address) is overwritten by
/// every replay, so it is neither stored nor compared. Slots that reach outside the value are left to validate().
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
