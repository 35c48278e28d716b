// Learns buckets (sizes to pad to) from the sizes of calls, and chooses a bucket for a call. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "warmgraph/profile/shapes.hpp"

namespace warmgraph::profile {

/// Returns the next multiple that is not less than `size`; nullopt if it exceeds k_largest_size. REQUIRES: size >= 0,
/// multiple_of >= 1.
[[nodiscard]] std::optional<std::int64_t> rounded(std::int64_t size, std::int64_t multiple_of) noexcept;

/// Returns the smallest bucket that holds the size; nullopt if no bucket does. REQUIRES: `buckets` ascends.
[[nodiscard]] std::optional<std::int64_t> bucket_for(std::span<const std::int64_t> buckets, std::int64_t size) noexcept;

/// Two sums over all calls, for one dimension: the elements that callers asked for, and the elements that padding
/// added.
struct Padding {
    double asked = 0, added = 0;
    [[nodiscard]] double share() const noexcept { return asked + added > 0 ? added / (asked + added) : 0; }
};
/// Returns the padding of the calls that fit into a bucket.
[[nodiscard]] Padding padding_of(const Histogram& sizes, std::span<const std::int64_t> buckets);

/// Returns the calls that were padded in this dimension, by the size that the function saw.
[[nodiscard]] Histogram ran_with(const Calls& calls, const Dimension& dimension);
/// Returns the padding of `calls` in this dimension.
[[nodiscard]] Padding padding_of(const Calls& calls, const Dimension& dimension);

/// Chooses at most BucketRequest::most buckets, each a multiple of BucketRequest::multiple_of, that hold all sizes with the least padding
/// over all calls; of equally good choices takes the one with fewer buckets. Returns no bucket if no size is above 0.
/// If more than k_most_shapes sizes remain after rounding, they are rounded up further.
[[nodiscard]] std::vector<std::int64_t> learn(const Histogram& sizes, const BucketRequest& wish);

/// Whether learnt buckets stay, so that a new process finds the entries of the last process. They stay while they hold
/// all sizes and add only little more padding than the best buckets: at most a fifth more, or two percent of the asked
/// elements.
[[nodiscard]] bool still_serve(std::span<const std::int64_t> learnt, std::span<const std::int64_t> best,
                               const Histogram& sizes, const BucketRequest& wish);

} // namespace warmgraph::profile
