// May a stored winner be used for what is asked now? A pure function, which says why not.
#pragma once

#include <cstdint>
#include <string>

#include "warmgraph/autotune/best_config.hpp"

namespace warmgraph::autotune {

enum class Search : std::uint8_t { enumerate, coordinate_descent };
enum class DriverRule : std::uint8_t { same, any };

/// What is asked for.
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
        winner, ///< as it is
        start,  ///< found by enumeration, and descent is asked for: it starts there
        none,   ///< a miss
    };
    Use use = Use::none;
    std::string why_not{}; ///< of a miss: what is stored, and what is wanted
};

[[nodiscard]] Judgement judge(const BestConfig& stored, const Wanted& now);

} // namespace warmgraph::autotune
