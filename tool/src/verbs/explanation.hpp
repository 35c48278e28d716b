// The findings of `warmgraph explain`, before they are printed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "verbs/comparison.hpp"

namespace warmgraph::tool {

enum class CallVerdict : std::uint8_t { hit, miss, refuse };
[[nodiscard]] const char* name_of(CallVerdict verdict) noexcept; ///< "hit", "miss", "refuse"

/// The same function of this model under another rank or configuration.
struct SiblingFunction {
    cachefmt::FunctionKey key;
    std::uint64_t variants = 0;
    std::vector<guards::Mismatch> differences{}; ///< facts in the folders' names: "recorded" in that folder, "now" here
};

struct Explanation {
    cachefmt::FunctionKey key;
    std::size_t variants = 0;
    std::vector<std::pair<Digest, Error>> unusable{};
    /// "last_miss" (the last missed call compared with the entries on disk now), "here" (this machine and environment).
    std::vector<std::pair<const char*, Comparison>> comparisons{};
    std::vector<std::string> binary_problems{}; ///< programs that entries name and that do not exist here
    std::string device_problem{}, last_miss_problem{};
    store::Misses misses{}; ///< the misses as stored
    std::vector<SiblingFunction> elsewhere{};
    CallVerdict verdict = CallVerdict::hit;
};

[[nodiscard]] Result<Explanation> make_explanation(const store::LocalStore& store, const cachefmt::FunctionKey& key,
                                                   const guards::Relaxation& relaxation);

/// The function that missed last, of several that fit a name; nullopt when none missed.
[[nodiscard]] std::optional<cachefmt::FunctionKey> missed_last(const store::LocalStore& store,
                                                               const std::vector<cachefmt::FunctionKey>& functions);

enum class MissCount : std::uint8_t { last, all };
[[nodiscard]] std::string to_text(const Context& context, const Explanation& explanation, MissCount count);
[[nodiscard]] Json to_json(const Explanation& explanation);

} // namespace warmgraph::tool
