// Helps a kind of node to describe the difference between two of its nodes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "difference_lines.hpp"

namespace warmgraph::cachefmt {

/// Adds lines about one node, or about a part of it. Each line starts with the name of the node or part.
class NodeDifference {
public:
    NodeDifference(DifferenceLines& lines, const Graph& recorded, const Graph& now, std::string where)
        : m_lines(lines), m_recorded(recorded), m_now(now), m_where(std::move(where))
    {
    }

    /// Returns the object for a part: "kernel rope (node 3)" becomes "kernel rope (node 3): parameter 1".
    [[nodiscard]] NodeDifference part(std::string_view name) const
    {
        return {m_lines, m_recorded, m_now, fmt::format("{}: {}", m_where, name)};
    }
    [[nodiscard]] const Graph& recorded() const noexcept { return m_recorded; }
    [[nodiscard]] const Graph& now() const noexcept { return m_now; }

    void line(std::string_view what, std::string_view a, std::string_view b) const
    {
        m_lines.line(m_where, what, a, b);
    }
    template <class T>
    void number(std::string_view what, T a, T b) const
    {
        m_lines.number(m_where, what, a, b);
    }
    void text(std::string_view what, const std::string& a, const std::string& b) const
    {
        m_lines.text(m_where, what, a, b);
    }
    void bytes(std::string_view what, const Bytes& a, const Bytes& b) const { m_lines.bytes(m_where, what, a, b); }
    void gone() const { m_lines.gone(m_where); }
    void added() const { m_lines.added(m_where); }

    void slot(const Slot& a, const Slot& b) const;
    void slots(const std::vector<Slot>& a, const std::vector<Slot>& b) const;

private:
    DifferenceLines& m_lines;
    const Graph& m_recorded;
    const Graph& m_now;
    std::string m_where;
};

} // namespace warmgraph::cachefmt
