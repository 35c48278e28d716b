// Time spent in a call: named phases in order, in milliseconds.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/base/clock.hpp"

namespace warmgraph {

class Phases {
public:
    /// Adds `time` to the phase of that name; a new phase is appended.
    void add(std::string_view name, Milliseconds time);
    [[nodiscard]] Milliseconds get(std::string_view name) const noexcept; ///< 0 when absent
    [[nodiscard]] const std::vector<std::pair<std::string, Milliseconds>>& list() const noexcept { return m_list; }

    /// Measures a scope: `auto timer = phases.measure("load");`
    class Scope {
    public:
        Scope(Phases& phases, std::string_view name) : m_phases(phases), m_name(name), m_start(system_clock().steady())
        {
        }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope() { m_phases.add(m_name, system_clock().steady() - m_start); }

    private:
        Phases& m_phases;
        std::string m_name;
        std::chrono::steady_clock::time_point m_start;
    };
    [[nodiscard]] Scope measure(std::string_view name) { return Scope{*this, name}; }

private:
    std::vector<std::pair<std::string, Milliseconds>> m_list;
};

} // namespace warmgraph
