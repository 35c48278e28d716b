// The shapes that a function was called with, and how often: each process (a writer) counts its own calls in a part of its
// own, and profiles are joined. Pure.
//
// join() is commutative, associative and idempotent, so it does not matter which process merges which file how often:
// of one writer's part the larger count of each shape stays, for a writer's counts only grow; of the writers those stay
// that k_most_last and k_most_busy choose, which choose the same from a union as from the parts of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::profile {

inline constexpr std::size_t k_most_shapes = 512;         ///< of one writer: the most frequent ones
inline constexpr std::size_t k_most_last = 24;            ///< writers that counted last
inline constexpr std::size_t k_most_busy = 8;             ///< and those that counted most calls
inline constexpr std::size_t k_most_arguments = 256;      ///< of a function
inline constexpr std::uint64_t k_most_calls = 1ULL << 48; ///< of one shape
inline constexpr std::int64_t k_largest_size = 1LL << 40; ///< of one dimension, in elements
inline constexpr std::size_t k_most_learnt = 16;          ///< groups of dimensions
inline constexpr std::uint32_t k_most_buckets = 256;      ///< of one group

/// Sizes in elements, by argument.
using Sizes = std::map<std::string, std::vector<std::int64_t>>;

/// What one call looked like.
struct Shape {
    Sizes sizes;                                 ///< of inputs and outputs, as the caller gave them
    std::map<std::string, std::string> values{}; ///< numbers that the function is specialised on, as text
    Sizes ran{};                                 ///< of the arguments that were padded: the sizes that the function saw
    auto operator<=>(const Shape&) const = default;
};

using Calls = std::map<Shape, std::uint64_t>;

/// What one writer counted.
struct Part {
    std::string last{};      ///< when it counted last: ISO 8601, UTC
    std::string host{};      ///< for people
    std::uint64_t total = 0; ///< calls, also of shapes that are not kept
    Calls calls{};
    auto operator<=>(const Part&) const = default;
};
/// Counts calls. Where there are k_most_shapes others, the least frequent of them is left out.
void count(Part& part, const Shape& shape, std::uint64_t calls = 1);

/// One dimension of an argument: "tokens[0]".
struct Dimension {
    std::string argument;
    std::size_t index = 0;
    auto operator<=>(const Dimension&) const = default;
};
[[nodiscard]] std::string to_text(const Dimension& dimension);

/// What is to be learnt for one group of dimensions, which have one size.
struct Wish {
    std::vector<Dimension> dimensions;
    std::uint32_t most = 1;       ///< buckets
    std::int64_t multiple_of = 1; ///< of which each bucket is one
    auto operator<=>(const Wish&) const = default;
};

/// The buckets that were chosen for a wish. The last choice stays when profiles are joined.
struct Learnt {
    std::string
        decided; ///< ISO 8601, UTC; or any text that begins with a letter: by hand, which is later than all times
    std::vector<std::int64_t> buckets; ///< ascending
    auto operator<=>(const Learnt&) const = default;
};

/// Was it set by hand, to stay whatever is called?
[[nodiscard]] bool is_pinned(const Learnt& learnt) noexcept;

struct Profile {
    Digest key; ///< what it is of, see key_of(); names the file
    std::string model_info, function;
    std::map<std::string, std::string> arguments; ///< inputs and outputs with their types: "tokens", "i32"
    std::map<std::string, Part> parts{};          ///< by writer
    std::map<Wish, Learnt> learnt{};
    bool operator==(const Profile&) const = default;
};

/// Content alone: the model with its configuration, the function's name, its arguments' names and types. No file, line,
/// rank or version of the code: what is called does not depend on them.
[[nodiscard]] Digest key_of(const Profile& profile);

/// invalid_argument: they are of different functions. What is too much is left out as the constants above say.
[[nodiscard]] Result<Profile> join(Profile one, const Profile& other);

/// Of all writers.
[[nodiscard]] Calls total(const Profile& profile);

/// How often each size of one dimension was called. Calls that lack the argument or the dimension are in none.
using Histogram = std::map<std::int64_t, std::uint64_t>;
[[nodiscard]] Histogram histogram(const Calls& calls, const Dimension& dimension);

/// A dimension, with the sizes that were seen.
struct Seen {
    Dimension dimension;
    Histogram sizes;
    [[nodiscard]] bool varies() const noexcept { return sizes.size() > 1; }
};
/// All dimensions of all arguments, by name.
[[nodiscard]] std::vector<Seen> dimensions_of(const Calls& calls);

} // namespace warmgraph::profile
