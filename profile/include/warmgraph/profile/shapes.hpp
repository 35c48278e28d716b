// The shapes that a function was called with, and how often. Each process (a writer) counts its own calls in its own
// part. join() combines profiles. All functions are pure.
//
// join() is commutative, associative and idempotent, so the order and number of merges does not matter. If both
// profiles have a part of the same writer, the larger count of each shape stays, because a writer's counts only grow.
// k_most_last and k_most_busy limit which writers stay; the order of joins does not change this choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::profile {

inline constexpr std::size_t k_most_shapes = 512;    ///< the most shapes of one writer; its most frequent shapes stay
inline constexpr std::size_t k_most_last = 24;       ///< how many writers stay because they counted last
inline constexpr std::size_t k_most_busy = 8;        ///< how many writers stay because they counted most calls
inline constexpr std::size_t k_most_arguments = 256; ///< the most arguments of a function
inline constexpr std::uint64_t k_most_calls = 1ULL << 48; ///< the most calls of one shape
inline constexpr std::int64_t k_largest_size = 1LL << 40; ///< the largest size of one dimension, in elements
inline constexpr std::size_t k_most_learnt = 16;          ///< the most groups of dimensions with learnt buckets
inline constexpr std::uint32_t k_most_buckets = 256;      ///< the most buckets of one group

/// Sizes in elements, by argument.
using Sizes = std::map<std::string, std::vector<std::int64_t>>;

struct Shape {
    Sizes sizes;                                 ///< sizes of inputs and outputs, as given by the caller
    std::map<std::string, std::string> values{}; ///< the numbers for which the function is specialised, as text
    Sizes ran{};                                 ///< sizes of the padded arguments, as the function saw them
    auto operator<=>(const Shape&) const = default;
};

using Calls = std::map<Shape, std::uint64_t>;

/// The counts of one writer.
struct Part {
    std::string last{};      ///< time of the writer's last count: ISO 8601, UTC
    std::string host{};      ///< name of the writer's host, for people
    std::uint64_t total = 0; ///< number of calls, including calls with shapes that are not kept
    Calls calls{};
    auto operator<=>(const Part&) const = default;
};
/// Counts calls. If there are already k_most_shapes other shapes, drops the least frequent shape.
void count(Part& part, const Shape& shape, std::uint64_t calls = 1);

/// One dimension of an argument: "tokens[0]".
struct Dimension {
    std::string argument;
    std::size_t index = 0;
    auto operator<=>(const Dimension&) const = default;
};
[[nodiscard]] std::string to_text(const Dimension& dimension);

/// A request to learn buckets for a group of dimensions that have the same size.
struct BucketRequest {
    std::vector<Dimension> dimensions;
    std::uint32_t most = 1;       ///< the largest number of buckets
    std::int64_t multiple_of = 1; ///< each bucket is a multiple of this number
    auto operator<=>(const BucketRequest&) const = default;
};

/// The buckets that were chosen for a wish. join() keeps the latest choice.
struct LearntBuckets {
    std::string
        /// Time of the choice: ISO 8601, UTC. For a choice by hand: a text that begins with a letter, so that it sorts
        /// after all times.
        decided;
    std::vector<std::int64_t> buckets; ///< the sizes to pad to, ascending
    auto operator<=>(const LearntBuckets&) const = default;
};

/// Whether the buckets were set by hand. Such buckets never change.
[[nodiscard]] bool is_pinned(const LearntBuckets& learnt) noexcept;

struct Profile {
    Digest key; ///< the result of key_of(); names the file
    std::string model_info, function;
    std::map<std::string, std::string> arguments; ///< types of inputs and outputs by name: "tokens", "i32"
    std::map<std::string, Part> parts{};          ///< the parts, by writer
    std::map<BucketRequest, LearntBuckets> learnt{};
    bool operator==(const Profile&) const = default;
};

/// Returns the key of a profile. It covers the model with its configuration, the function's name, and its arguments'
/// names and types. It does not cover file, line, rank and code version, because the called shapes do not depend on
/// these.
[[nodiscard]] Digest key_of(const Profile& profile);

/// Joins two profiles. invalid_argument: they belong to different functions. Drops the parts and shapes that exceed the
/// limits above.
[[nodiscard]] Result<Profile> join(Profile one, const Profile& other);

/// Returns the calls of all writers.
[[nodiscard]] Calls total(const Profile& profile);

/// The number of calls for each size of one dimension. Calls without the argument or the dimension are not counted.
using Histogram = std::map<std::int64_t, std::uint64_t>;
[[nodiscard]] Histogram histogram(const Calls& calls, const Dimension& dimension);

/// A dimension with the sizes that it had in calls, and how often.
struct DimensionSizes {
    Dimension dimension;
    Histogram sizes;
    [[nodiscard]] bool varies() const noexcept { return sizes.size() > 1; }
};
/// Returns all dimensions of all arguments, sorted by name.
[[nodiscard]] std::vector<DimensionSizes> dimensions_of(const Calls& calls);

} // namespace warmgraph::profile
