#include "warmgraph/call/surroundings.hpp"

#include "warmgraph/backends/device.hpp"
#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph {

Surroundings::Surroundings(std::shared_ptr<const Declaration> declaration, Gather gather)
    : m_declaration(std::move(declaration)),
      m_gather(std::move(gather)),
      m_registrations(m_declaration->backend()->registrations()),
      m_exposures(m_declaration->backend()->exposures())
{
}

auto Surroundings::notice() -> Change
{
    Change change;
    if (const auto now = m_declaration->backend()->registrations(); now != m_registrations) {
        // Loaded variants may now have to use the registered module, and code that was refused may now be known.
        change.drops_all = "a module was registered after they were adopted: register modules before adopting";
        m_registrations = now;
    }
    if (const auto now = m_declaration->backend()->exposures(); now != m_exposures) {
        change.exposed = true;
        m_exposures = now;
    }
    if (m_declaration->spec.environment.empty()) return change;
    auto now = environment_of(m_declaration->spec);
    if (now == m_environment) return change;
    if (!m_environment.empty()) {
        change.drops_all = "an environment variable in Spec::environment changed after they were recorded";
        m_facts.clear();
    }
    m_environment = std::move(now);
    return change;
}

void Surroundings::describe(const Frame& frame, FirstCall& first_call)
{
    const Interface& interface = m_declaration->interface;
    const backends::Device& device = *m_declaration->backend();
    if (m_facts.empty()) m_facts = m_gather();
    first_call.now.facts = m_facts;
    first_call.now.tensors = guards::describe(frame.tensors, interface.region_names, device.backend() + ":");
    for (std::size_t i = 0; i < first_call.now.tensors.size(); ++i)
        if (device.space_of(frame.memory[i].address) == cachefmt::MemorySpace::host)
            first_call.now.tensors[i].device = k_host_memory;
    for (std::size_t i = 0; i < interface.values.size(); ++i)
        first_call.now.values.push_back({interface.values[i].name, interface.values[i].dtype, frame.values[i]});
    // The digest covers no distances, because few entries need them.
    first_call.digest = cachefmt::guards_digest(first_call.now);
    guards::guard_distances(first_call.now.tensors, frame.tensors);
}

} // namespace warmgraph
