// Decides whether a stored winner may be used for a request, and gives the reason if it may not. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "warmgraph/autotune/best_config.hpp"

namespace warmgraph::autotune {

enum class SearchMethod : std::uint8_t { enumerate, coordinate_descent };
enum class DriverRule : std::uint8_t { same, any };

/// The request for a tuned configuration.
struct ConfigRequest {
    std::string kernel;
    Digest key;
    Space space;
    Facts driver{};
    SearchMethod search = SearchMethod::enumerate;
    DriverRule driver_rule = DriverRule::same;
};

struct WinnerVerdict {
    enum class Use : std::uint8_t {
        winner, ///< use the stored winner
        start,  ///< begin a descent at the stored winner, which an enumeration found
        none,   ///< a miss: the stored winner is not used
    };
    Use use = Use::none;
    std::string why_not{}; ///< for a miss: the value that differs, as stored and as wanted
};

[[nodiscard]] WinnerVerdict judge(const BestConfig& stored, const ConfigRequest& now);

} // namespace warmgraph::autotune
