#include "warmgraph/capture/bindings.hpp"

#include <algorithm>

namespace warmgraph {

replay::Bindings bindings_of(const cachefmt::Graph& graph, const std::vector<MemoryRef>& regions,
                             const std::vector<std::uint64_t>& scalars, const DeclaredHandles& handles)
{
    const auto named = [](const std::vector<std::string>& names, const NamedHandles& declared) {
        std::vector<std::uint64_t> found;
        for (const std::string& name : names) {
            const auto at = find_name(declared, name);
            found.push_back(at != declared.end() ? at->second : 0);
        }
        return found;
    };
    replay::Bindings result{regions, scalars, named(graph.events, handles.events),
                            named(graph.semaphores, handles.semaphores)};
    result.regions.resize(graph.regions.size());
    return result;
}

} // namespace warmgraph
