// Counts and logs the cache's failures for one function. After a failure the function runs without a graph.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "warmgraph/base/log.hpp"
#include "warmgraph/call/counters.hpp"
#include "warmgraph/call/declaration.hpp"

namespace warmgraph {

/// Thread-safe. `counters` must outlive this object.
class Faults {
public:
    Faults(std::shared_ptr<const Declaration> declaration, Counters& counters)
        : m_declaration(std::move(declaration)), m_counters(counters)
    {
    }
    void note(std::string_view doing, const Error& error) const
    {
        m_counters.cache_fault();
        log().warn("{}: {} failed{}: {}", m_declaration->path, doing,
                   m_declaration->callable ? ", the function runs as it is" : "", error.message);
    }

private:
    std::shared_ptr<const Declaration> m_declaration;
    Counters& m_counters;
};

} // namespace warmgraph
