#include "warmgraph/base/phases.hpp"

#include <algorithm>

namespace warmgraph {

void Phases::add(std::string_view name, Milliseconds time)
{
    const auto found = std::ranges::find(m_list, name, &std::pair<std::string, Milliseconds>::first);
    if (found == m_list.end()) {
        m_list.emplace_back(name, time);
    } else {
        found->second += time;
    }
}

Milliseconds Phases::get(std::string_view name) const noexcept
{
    const auto found = std::ranges::find(m_list, name, &std::pair<std::string, Milliseconds>::first);
    return found == m_list.end() ? Milliseconds{0} : found->second;
}

} // namespace warmgraph
