// Which sizes are padded to which: the choice of buckets from what was called, and of a bucket for a call. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "warmgraph/profile/shapes.hpp"

namespace warmgraph::profile {

/// The next multiple; nullopt where it is beyond k_largest_size. REQUIRES: size >= 0, multiple_of >= 1.
[[nodiscard]] std::optional<std::int64_t> rounded(std::int64_t size, std::int64_t multiple_of) noexcept;

/// The smallest that holds the size; nullopt: none does. REQUIRES: ascending.
[[nodiscard]] std::optional<std::int64_t> bucket_for(std::span<const std::int64_t> buckets, std::int64_t size) noexcept;

/// Elements of one dimension over all calls: those that were asked for, and those that were added.
struct Padding {
    double asked = 0, added = 0;
    [[nodiscard]] double share() const noexcept { return asked + added > 0 ? added / (asked + added) : 0; }
};
/// Of the calls that a bucket holds.
[[nodiscard]] Padding padding_of(const Histogram& sizes, std::span<const std::int64_t> buckets);

/// What was padded to: calls by the size that the function saw, of those calls that were padded in this dimension.
[[nodiscard]] Histogram ran_with(const Calls& calls, const Dimension& dimension);
/// The same calls' elements.
[[nodiscard]] Padding padding_of(const Calls& calls, const Dimension& dimension);

/// The buckets, at most Wish::most and each a multiple of Wish::multiple_of, that hold all sizes with the least padding over
/// all calls; of equal choices the one with fewer. Empty where no size is above 0. Where there are more than
/// k_most_shapes sizes after rounding, they are rounded up further.
[[nodiscard]] std::vector<std::int64_t> learn(const Histogram& sizes, const Wish& wish);

/// Those that were learnt stay, so that a start finds what the last one recorded, as long as they hold all sizes and cost
/// hardly more padding than the best ones would: a fifth more, or two percent of what is asked for.
[[nodiscard]] bool still_serve(std::span<const std::int64_t> learnt, std::span<const std::int64_t> best,
                               const Histogram& sizes, const Wish& wish);

} // namespace warmgraph::profile
