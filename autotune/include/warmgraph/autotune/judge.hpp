// Decides whether a stored winner may be used for a request, and says why not. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "warmgraph/autotune/best_config.hpp"

namespace warmgraph::autotune {

enum class Search : std::uint8_t { enumerate, coordinate_descent };
enum class DriverRule : std::uint8_t { same, any };

/// The request.
struct Wanted {
    std::string kernel;
    Digest key;
    Space space;
    Facts driver{};
    Search search = Search::enumerate;
    DriverRule driver_rule = DriverRule::same;
};

struct Judgement {
    enum class Use : std::uint8_t {
        winner, ///< use the stored winner
        start,  ///< start a descent at the stored winner, which enumeration found
        none,   ///< a miss
    };
    Use use = Use::none;
    std::string why_not{}; ///< for a miss: the stored and the wanted value
};

[[nodiscard]] Judgement judge(const BestConfig& stored, const Wanted& now);

} // namespace warmgraph::autotune
