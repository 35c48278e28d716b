// The seam for time: all code that needs the time takes a Clock&.
#pragma once

#include <chrono>
#include <string>

namespace warmgraph {

using Milliseconds = std::chrono::duration<double, std::milli>;

class Clock {
public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual std::chrono::steady_clock::time_point steady() const noexcept = 0;
    [[nodiscard]] virtual std::chrono::system_clock::time_point wall() const noexcept = 0;
    virtual void sleep_for(std::chrono::nanoseconds time) = 0;
};

/// The machine's clock; lives for the whole process, thread-safe.
[[nodiscard]] Clock& system_clock() noexcept;

/// Formats as "2026-11-20T10:11:12Z".
[[nodiscard]] std::string to_iso8601(std::chrono::system_clock::time_point time);

} // namespace warmgraph
