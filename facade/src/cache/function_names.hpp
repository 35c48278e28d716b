// The functions of one cache, found by name.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cache/wrapped_function.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

/// Thread-safe. Does not keep functions alive.
class FunctionNames {
public:
    /// Reserves the name for a function. Throws invalid_argument if the name is taken.
    void claim(const std::string& name)
    {
        const std::scoped_lock lock{m_mutex};
        if (!m_functions.try_emplace(name).second)
            raise({ErrorCode::invalid_argument,
                   fmt::format("'{}' is wrapped already in this cache: give each function its own name", name)});
    }
    /// Sets the function for a claimed name.
    void set(const std::string& name, std::shared_ptr<const WrappedFunction> function)
    {
        const std::scoped_lock lock{m_mutex};
        m_functions[name] = std::move(function);
    }
    void release(const std::string& name) noexcept
    {
        const std::scoped_lock lock{m_mutex};
        m_functions.erase(name);
    }
    /// Whether a function with this name is wrapped or loaded.
    [[nodiscard]] bool has(const std::string& name) const
    {
        const std::scoped_lock lock{m_mutex};
        return m_functions.contains(name);
    }
    /// Returns the functions that exist now.
    [[nodiscard]] std::vector<std::shared_ptr<const WrappedFunction>> living() const
    {
        std::vector<std::shared_ptr<const WrappedFunction>> result;
        const std::scoped_lock lock{m_mutex};
        for (const auto& [name, function] : m_functions)
            if (function && function->exists()) result.push_back(function);
        return result;
    }
    /// Returns the function; null if no function with this name exists.
    [[nodiscard]] std::shared_ptr<const WrappedFunction> find(const std::string& name) const
    {
        const std::scoped_lock lock{m_mutex};
        const auto found = m_functions.find(name);
        return found != m_functions.end() && found->second && found->second->exists() ? found->second : nullptr;
    }

private:
    mutable std::mutex m_mutex;
    /// Null while the function is being made.
    std::map<std::string, std::shared_ptr<const WrappedFunction>> m_functions;
};

} // namespace warmgraph
