#include "warmgraph/profile/shapes.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace warmgraph::profile {
namespace {

std::uint64_t capped(std::uint64_t calls) noexcept { return std::min(calls, k_most_calls); }

/// Keeps the most frequent shapes; of equally frequent shapes, keeps the first in sort order, so that the order of
/// joins does not matter.
void keep_most_frequent(Calls& calls)
{
    if (calls.size() <= k_most_shapes) return;
    std::vector<std::pair<std::uint64_t, const Shape*>> order;
    order.reserve(calls.size());
    for (const auto& [shape, number] : calls) order.emplace_back(number, &shape);
    const auto more = [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : *a.second < *b.second;
    };
    std::ranges::nth_element(order, order.begin() + k_most_shapes, more);
    const std::vector<std::pair<std::uint64_t, const Shape*>> leaving(order.begin() + k_most_shapes, order.end());
    for (const auto& [number, shape] : leaving) calls.erase(calls.find(*shape));
}

void join_part(Part& into, const Part& other)
{
    for (const auto& [shape, number] : other.calls) {
        std::uint64_t& here = into.calls[shape];
        here = std::max(here, number);
    }
    keep_most_frequent(into.calls);
    into.total = std::max(into.total, other.total);
    into.last = std::max(into.last, other.last); // ISO 8601 sorts as text
    into.host = std::max(into.host, other.host);
}

/// Keeps the writers that counted last and the writers that counted most calls.
void keep_writers(std::map<std::string, Part>& parts)
{
    if (parts.size() <= k_most_last) return;
    using Rank = std::tuple<std::string, std::uint64_t, std::string>;
    std::vector<Rank> writers;
    for (const auto& [writer, part] : parts) writers.emplace_back(part.last, part.total, writer);
    std::set<std::string> kept;
    const auto keep_first = [&](std::size_t most, const auto& before) {
        const auto end = writers.begin() + static_cast<std::ptrdiff_t>(std::min(most, writers.size()));
        std::ranges::partial_sort(writers, end, before);
        for (auto writer = writers.begin(); writer != end; ++writer) kept.insert(std::get<2>(*writer));
    };
    keep_first(k_most_last, std::greater<>{});
    keep_first(k_most_busy, [](const Rank& a, const Rank& b) {
        return std::tie(std::get<1>(a), std::get<2>(a)) > std::tie(std::get<1>(b), std::get<2>(b));
    });
    std::erase_if(parts, [&](const auto& item) { return !kept.contains(item.first); });
}

void join_learnt(std::map<BucketRequest, LearntBuckets>& into, const std::map<BucketRequest, LearntBuckets>& other)
{
    for (const auto& [wish, learnt] : other) {
        LearntBuckets& here = into[wish];
        here = std::max(here, learnt);
    }
    while (into.size() > k_most_learnt)
        into.erase(
            std::ranges::min_element(into, {}, [](const auto& item) { return std::tie(item.second, item.first); }));
}

} // namespace

void count(Part& part, const Shape& shape, std::uint64_t calls)
{
    part.total = capped(part.total + calls);
    const auto found = part.calls.find(shape);
    if (found != part.calls.end()) {
        found->second = capped(found->second + calls);
        return;
    }
    if (part.calls.size() >= k_most_shapes)
        part.calls.erase(std::ranges::min_element(part.calls, {}, [](const auto& item) { return item.second; }));
    part.calls.emplace(shape, capped(calls));
}

bool is_pinned(const LearntBuckets& learnt) noexcept
{
    const char first = learnt.decided.empty() ? '0' : learnt.decided.front();
    return (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
}

std::string to_text(const Dimension& dimension) { return fmt::format("{}[{}]", dimension.argument, dimension.index); }

Digest key_of(const Profile& profile)
{
    Sha256 hash;
    hash.update_field("warmgraph shape profile");
    hash.update_field(profile.model_info).update_field(profile.function);
    for (const auto& [argument, type] : profile.arguments) hash.update_field(argument).update_field(type);
    return hash.finish();
}

Result<Profile> join(Profile one, const Profile& other)
{
    if (one.key != other.key)
        return fail(ErrorCode::invalid_argument, "a profile of '{}' ({}) and one of '{}' ({}) have nothing to join",
                    one.function, short_hex(one.key), other.function, short_hex(other.key));
    for (const auto& [writer, part] : other.parts) join_part(one.parts[writer], part);
    keep_writers(one.parts);
    join_learnt(one.learnt, other.learnt);
    return one;
}

Calls total(const Profile& profile)
{
    Calls calls;
    for (const auto& [writer, part] : profile.parts)
        for (const auto& [shape, number] : part.calls) calls[shape] += number;
    return calls;
}

Histogram histogram(const Calls& calls, const Dimension& dimension)
{
    Histogram sizes;
    for (const auto& [shape, number] : calls) {
        const auto argument = shape.sizes.find(dimension.argument);
        if (argument == shape.sizes.end() || dimension.index >= argument->second.size()) continue;
        sizes[argument->second[dimension.index]] += number;
    }
    return sizes;
}

std::vector<DimensionSizes> dimensions_of(const Calls& calls)
{
    std::map<Dimension, Histogram> seen;
    for (const auto& [shape, number] : calls)
        for (const auto& [argument, sizes] : shape.sizes)
            for (std::size_t index = 0; index < sizes.size(); ++index) seen[{argument, index}][sizes[index]] += number;
    std::vector<DimensionSizes> result;
    for (auto& [dimension, sizes] : seen) result.push_back({dimension, std::move(sizes)});
    return result;
}

} // namespace warmgraph::profile
