#pragma once

#include <chrono>

#include "warmgraph/base/clock.hpp"

namespace warmgraph::precompile {

class Stopwatch {
public:
    [[nodiscard]] double ms() const
    {
        return std::chrono::duration<double, std::milli>(system_clock().steady() - m_begin).count();
    }

private:
    std::chrono::steady_clock::time_point m_begin = system_clock().steady();
};

} // namespace warmgraph::precompile
