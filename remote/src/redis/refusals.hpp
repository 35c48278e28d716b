// The objects of a remote that failed verification. Nothing is removed from the remote, which others use: this process
// does not take these objects again.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace warmgraph::remote::redis {

/// Thread-safe.
class Refusals {
public:
    void add(const std::string& name, std::uint64_t size)
    {
        const std::scoped_lock guard(m_mutex);
        m_sizes.insert_or_assign(name, size);
    }
    /// The size stands for the object, because Redis has no version of it.
    [[nodiscard]] bool contains(const std::string& name, std::uint64_t size) const
    {
        const std::scoped_lock guard(m_mutex);
        const auto refused = m_sizes.find(name);
        return refused != m_sizes.end() && refused->second == size;
    }
    [[nodiscard]] bool contains(const std::string& name) const
    {
        const std::scoped_lock guard(m_mutex);
        return m_sizes.contains(name);
    }
    void forget(const std::string& name)
    {
        const std::scoped_lock guard(m_mutex);
        m_sizes.erase(name);
    }

private:
    mutable std::mutex m_mutex;
    std::map<std::string, std::uint64_t> m_sizes; ///< guarded; from name to size
};

} // namespace warmgraph::remote::redis
