#include "fake_state.hpp"

#include <algorithm>
#include <optional>

namespace warmgraph::backends {

Result<void> FakeState::enter(const char* entry)
{
    std::unique_lock lock(m_mutex);
    m_calls.emplace_back(entry);
    std::optional<Error> failure;
    std::function<void()> instead;
    for (Fault& fault : m_faults) {
        if (!fault.entry.empty() && fault.entry != entry) continue;
        if (fault.nth > 1) {
            --fault.nth;
            continue;
        }
        if (fault.nth == 0) continue;
        if (fault.instead)
            instead = fault.instead;
        else
            failure = fault.error;
        if (fault.length == FaultLength::once) fault.nth = 0;
    }
    lock.unlock(); // unlocked, because `instead` may wait for other calls
    if (instead) instead();
    if (!failure) return {};
    return within(entry, *failure);
}

void FakeState::inject(Fault fault)
{
    const std::scoped_lock lock(m_mutex);
    m_faults.push_back(std::move(fault));
}

void FakeState::clear_faults()
{
    const std::scoped_lock lock(m_mutex);
    m_faults.clear();
}

std::vector<std::string> FakeState::calls() const
{
    const std::scoped_lock lock(m_mutex);
    return m_calls;
}

std::uint64_t FakeState::call_count(std::string_view entry) const
{
    const std::scoped_lock lock(m_mutex);
    return static_cast<std::uint64_t>(std::ranges::count(m_calls, entry));
}

void FakeState::clear_calls()
{
    const std::scoped_lock lock(m_mutex);
    m_calls.clear();
}

} // namespace warmgraph::backends
