#include "this_machine.hpp"

#include "warmgraph/backends/built.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/bundle/compatibility.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/guards/environment.hpp"

namespace warmgraph::tool {

void ThisMachine::note_device(const std::string& id, std::vector<cachefmt::Fact> facts)
{
    m_devices.insert_or_assign(id, std::move(facts));
}

const std::vector<cachefmt::Fact>& ThisMachine::device(const std::string& id)
{
    const auto [known, is_new] = m_devices.try_emplace(id);
    if (!is_new) return known->second;
    const auto opened = backends::open_built_device(id);
    if (opened) {
        known->second = (*opened)->facts();
        m_open.emplace(id, *opened);
    } else {
        m_problems.emplace(id, opened.error().message);
    }
    return known->second;
}

backends::Device* ThisMachine::first_device(const std::string& backend)
{
    static_cast<void>(device(backend));
    const auto open = m_open.find(backend);
    return open != m_open.end() ? open->second.get() : nullptr;
}

std::vector<cachefmt::Fact> ThisMachine::facts_for(const cachefmt::Guards& recorded)
{
    const auto& of_device = device(bundle::device_of(recorded));
    std::vector<cachefmt::Fact> facts = of_device;
    for (const cachefmt::Fact& fact : recorded.facts) {
        if (of_device.empty() && guards::is_of_environment(fact.name)) // the device cannot be opened
            facts.push_back({fact.name, cachefmt::k_unknown, fact.role});
        if (!fact.name.starts_with(cachefmt::fact::k_environment)) continue;
        const auto value = environment(fact.name.c_str() + cachefmt::fact::k_environment.size());
        facts.push_back({fact.name, value.value_or(std::string(cachefmt::fact::k_unset)), fact.role});
    }
    guards::canonicalize(facts);
    return facts;
}

} // namespace warmgraph::tool
