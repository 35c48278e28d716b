// The facts of the call that Cache::find looked for last.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

inline constexpr const char* k_interface_fact = "interface";

/// Whoever finds an entry loads its function next, with the same facts: a model has hundreds, which need not be gathered and
/// sorted again. Thread-safe.
class FoundFacts {
public:
    /// `facts` were gathered for this.
    void keep(std::string function, const backends::Device& device, Spec spec, std::vector<cachefmt::Fact> facts)
    {
        if (!is_all(spec)) return;
        const std::scoped_lock lock{m_mutex};
        m_last = Last{std::move(function),           &device,         std::move(spec.version), std::move(spec.config),
                      std::move(spec.recorded_code), std::move(facts)};
    }
    /// Those of a function without a callable that has this interface, once. nullopt: they must be gathered.
    [[nodiscard]] std::optional<std::vector<cachefmt::Fact>> take(const std::string& function,
                                                                  const backends::Device& device, const Spec& spec,
                                                                  std::string interface)
    {
        if (!is_all(spec)) return std::nullopt;
        std::optional<Last> last;
        {
            const std::scoped_lock lock{m_mutex};
            if (!m_last || m_last->function != function || m_last->device != &device) return std::nullopt;
            last.swap(m_last);
        }
        if (last->version != spec.version || last->config != spec.config || last->recorded_code != spec.recorded_code)
            return std::nullopt;
        const auto of_interface = std::ranges::find(last->facts, k_interface_fact, &cachefmt::Fact::name);
        if (of_interface == last->facts.end()) return std::nullopt;
        of_interface->value = std::move(interface);
        return std::move(last->facts);
    }

private:
    /// Whether nothing else of it is a fact.
    static bool is_all(const Spec& spec)
    {
        return spec.environment.empty() && spec.code.empty() && spec.tuned.empty() && spec.metadata.empty();
    }

    struct Last {
        std::string function;
        const backends::Device* device = nullptr;
        std::string version;
        decltype(Spec::config) config;
        decltype(Spec::recorded_code) recorded_code;
        std::vector<cachefmt::Fact> facts;
    };
    std::mutex m_mutex;
    std::optional<Last> m_last;
};

} // namespace warmgraph
