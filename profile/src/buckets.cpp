#include "warmgraph/profile/buckets.hpp"

#include <algorithm>
#include <limits>

namespace warmgraph::profile {
namespace {

/// Returns the calls by rounded size, with at most k_most_shapes different sizes.
Histogram rounded_sizes(const Histogram& sizes, std::int64_t multiple_of)
{
    Histogram result;
    for (const auto& [size, calls] : sizes)
        if (const auto up = rounded(size, multiple_of); up && *up > 0) result[*up] += calls;
    return result;
}

Histogram few_sizes(const Histogram& sizes, std::int64_t multiple_of)
{
    Histogram result = rounded_sizes(sizes, multiple_of);
    while (result.size() > k_most_shapes && multiple_of <= k_largest_size / 2) {
        multiple_of *= 2;
        result = rounded_sizes(sizes, multiple_of);
    }
    return result;
}

/// Running sums over the sorted sizes, so that the cost of a bucket needs only two subtractions.
struct Sums {
    explicit Sums(const Histogram& sizes)
    {
        for (const auto& [size, number] : sizes) {
            bucket.push_back(size);
            calls.push_back(calls.back() + static_cast<double>(number));
            elements.push_back(elements.back() + static_cast<double>(number) * static_cast<double>(size));
        }
    }
    /// Returns the number of elements that padding adds if the sizes [first, last] are padded to the last size.
    [[nodiscard]] double added(std::size_t first, std::size_t last) const
    {
        return (calls[last + 1] - calls[first]) * static_cast<double>(bucket[last]) -
               (elements[last + 1] - elements[first]);
    }
    std::vector<std::int64_t> bucket{};
    std::vector<double> calls{0}, elements{0};
};

} // namespace

std::optional<std::int64_t> rounded(std::int64_t size, std::int64_t multiple_of) noexcept
{
    if (size > k_largest_size || multiple_of > k_largest_size) return std::nullopt;
    const std::int64_t up = (size + multiple_of - 1) / multiple_of * multiple_of;
    return up <= k_largest_size ? std::optional(up) : std::nullopt;
}

std::optional<std::int64_t> bucket_for(std::span<const std::int64_t> buckets, std::int64_t size) noexcept
{
    const auto found = std::ranges::lower_bound(buckets, size);
    return found != buckets.end() ? std::optional(*found) : std::nullopt;
}

Padding padding_of(const Histogram& sizes, std::span<const std::int64_t> buckets)
{
    Padding padding;
    for (const auto& [size, calls] : sizes) {
        const auto bucket = bucket_for(buckets, size);
        if (!bucket) continue;
        padding.asked += static_cast<double>(calls) * static_cast<double>(size);
        padding.added += static_cast<double>(calls) * static_cast<double>(*bucket - size);
    }
    return padding;
}

namespace {

/// Calls `visit` for each padded shape, with the size that the caller asked for, the size that the function saw, and
/// the number of calls.
template <class Visit>
void for_each_padded(const Calls& calls, const Dimension& dimension, const Visit& visit)
{
    for (const auto& [shape, number] : calls) {
        const auto asked = shape.sizes.find(dimension.argument), ran = shape.ran.find(dimension.argument);
        if (asked == shape.sizes.end() || ran == shape.ran.end()) continue;
        if (dimension.index >= asked->second.size() || dimension.index >= ran->second.size()) continue;
        visit(asked->second[dimension.index], ran->second[dimension.index], number);
    }
}

} // namespace

Histogram ran_with(const Calls& calls, const Dimension& dimension)
{
    Histogram sizes;
    for_each_padded(calls, dimension,
                    [&](std::int64_t, std::int64_t ran, std::uint64_t number) { sizes[ran] += number; });
    return sizes;
}

Padding padding_of(const Calls& calls, const Dimension& dimension)
{
    Padding padding;
    for_each_padded(calls, dimension, [&](std::int64_t asked, std::int64_t ran, std::uint64_t number) {
        padding.asked += static_cast<double>(number) * static_cast<double>(asked);
        padding.added += static_cast<double>(number) * static_cast<double>(std::max<std::int64_t>(ran - asked, 0));
    });
    return padding;
}

/// Cuts the sorted sizes into runs, each padded to its last size. The best cut of the first sizes into k runs extends a
/// best cut of fewer sizes into k - 1 runs (dynamic programming, O(sizes^2 * buckets)).
std::vector<std::int64_t> learn(const Histogram& sizes, const BucketRequest& wish)
{
    const Sums sums(few_sizes(sizes, std::max<std::int64_t>(wish.multiple_of, 1)));
    const std::size_t count = sums.bucket.size();
    if (count == 0 || wish.most == 0) return {};
    const std::size_t most = std::min<std::size_t>(std::min(wish.most, k_most_buckets), count);
    constexpr double k_never = std::numeric_limits<double>::infinity();
    // best[k][n]: the elements that padding adds if the first n sizes have k buckets; first[k][n]: the first size in
    // the last bucket.
    std::vector<std::vector<double>> best(most + 1, std::vector<double>(count + 1, k_never));
    std::vector<std::vector<std::size_t>> first(most + 1, std::vector<std::size_t>(count + 1, 0));
    best[0][0] = 0;
    for (std::size_t k = 1; k <= most; ++k)
        for (std::size_t n = k; n <= count; ++n)
            for (std::size_t start = k - 1; start < n; ++start) {
                const double added = best[k - 1][start] + sums.added(start, n - 1);
                if (added >= best[k][n]) continue;
                best[k][n] = added;
                first[k][n] = start;
            }
    std::size_t k = 1;
    for (std::size_t more = 2; more <= most; ++more)
        if (best[more][count] < best[k][count]) k = more;
    std::vector<std::int64_t> buckets;
    for (std::size_t n = count; k > 0; n = first[k--][n]) buckets.push_back(sums.bucket[n - 1]);
    std::ranges::reverse(buckets);
    return buckets;
}

bool still_serve(std::span<const std::int64_t> learnt, std::span<const std::int64_t> best, const Histogram& sizes,
                 const BucketRequest& wish)
{
    if (learnt.empty() || learnt.size() > wish.most || !std::ranges::is_sorted(learnt)) return false;
    if (std::ranges::any_of(learnt, [&](std::int64_t size) { return size <= 0 || size % wish.multiple_of != 0; }))
        return false;
    if (!sizes.empty() && sizes.rbegin()->first > learnt.back()) return false;
    const Padding now = padding_of(sizes, learnt), then = padding_of(sizes, best);
    constexpr double k_more = 1.2, k_of_asked = 0.02;
    return now.added <= then.added * k_more + now.asked * k_of_asked;
}

} // namespace warmgraph::profile
