// The shapes that a function was called with, and how often. Each process (a writer) counts its own calls in its own
// part. Profiles are joined. Pure.
//
// join() is commutative, associative and idempotent, so the order and number of merges does not matter. Of one writer's
// part, the larger count of each shape stays, because a writer's counts only grow. k_most_last and k_most_busy choose
// the writers that stay; the choice from a union is the same as from its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::profile {

inline constexpr std::size_t k_most_shapes = 512;         ///< of one writer: its most frequent shapes
inline constexpr std::size_t k_most_last = 24;            ///< keep the writers that counted last
inline constexpr std::size_t k_most_busy = 8;             ///< and the writers that counted most calls
inline constexpr std::size_t k_most_arguments = 256;      ///< of a function
inline constexpr std::uint64_t k_most_calls = 1ULL << 48; ///< of one shape
inline constexpr std::int64_t k_largest_size = 1LL << 40; ///< of one dimension, in elements
inline constexpr std::size_t k_most_learnt = 16;          ///< groups of dimensions
inline constexpr std::uint32_t k_most_buckets = 256;      ///< of one group

/// Sizes in elements, by argument.
using Sizes = std::map<std::string, std::vector<std::int64_t>>;

struct Shape {
    Sizes sizes;                                 ///< of inputs and outputs, as given by the caller
    std::map<std::string, std::string> values{}; ///< as text: the numbers that the function is specialised on
    Sizes ran{};                                 ///< the sizes that the function saw, of the padded arguments
    auto operator<=>(const Shape&) const = default;
};

using Calls = std::map<Shape, std::uint64_t>;

/// The counts of one writer.
struct Part {
    std::string last{};      ///< time of its last count: ISO 8601, UTC
    std::string host{};      ///< for people
    std::uint64_t total = 0; ///< calls, including those of shapes that are not kept
    Calls calls{};
    auto operator<=>(const Part&) const = default;
};
/// Counts calls. When there are k_most_shapes other shapes, the least frequent one is dropped.
void count(Part& part, const Shape& shape, std::uint64_t calls = 1);

/// One dimension of an argument: "tokens[0]".
struct Dimension {
    std::string argument;
    std::size_t index = 0;
    auto operator<=>(const Dimension&) const = default;
};
[[nodiscard]] std::string to_text(const Dimension& dimension);

/// A request to learn buckets for a group of dimensions that have the same size.
struct Wish {
    std::vector<Dimension> dimensions;
    std::uint32_t most = 1;       ///< the most buckets
    std::int64_t multiple_of = 1; ///< each bucket is a multiple of this
    auto operator<=>(const Wish&) const = default;
};

/// The buckets that were chosen for a wish. join() keeps the latest choice.
struct Learnt {
    std::string
        /// ISO 8601, UTC; or, for a choice by hand, a text that begins with a letter, which sorts after all times.
        decided;
    std::vector<std::int64_t> buckets; ///< ascending
    auto operator<=>(const Learnt&) const = default;
};

/// Whether it was set by hand, so that it never changes.
[[nodiscard]] bool is_pinned(const Learnt& learnt) noexcept;

struct Profile {
    Digest key; ///< key_of(); names the file
    std::string model_info, function;
    std::map<std::string, std::string> arguments; ///< types of inputs and outputs by name: "tokens", "i32"
    std::map<std::string, Part> parts{};          ///< by writer
    std::map<Wish, Learnt> learnt{};
    bool operator==(const Profile&) const = default;
};

/// The key covers the model with its configuration, the function's name, and its arguments' names and types. It leaves
/// out file, line, rank and code version, because the called shapes do not depend on them.
[[nodiscard]] Digest key_of(const Profile& profile);

/// invalid_argument: they belong to different functions. The constants above say what is dropped.
[[nodiscard]] Result<Profile> join(Profile one, const Profile& other);

/// The calls of all writers.
[[nodiscard]] Calls total(const Profile& profile);

/// Calls by size of one dimension. Calls without the argument or the dimension are not counted.
using Histogram = std::map<std::int64_t, std::uint64_t>;
[[nodiscard]] Histogram histogram(const Calls& calls, const Dimension& dimension);

/// A dimension with the sizes that it had in calls.
struct Seen {
    Dimension dimension;
    Histogram sizes;
    [[nodiscard]] bool varies() const noexcept { return sizes.size() > 1; }
};
/// All dimensions of all arguments, by name.
[[nodiscard]] std::vector<Seen> dimensions_of(const Calls& calls);

} // namespace warmgraph::profile
