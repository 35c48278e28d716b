#include "warmgraph/backends/registry.hpp"

#include <algorithm>
#include <mutex>

namespace warmgraph::backends {
namespace {

struct Registry {
    std::mutex mutex;
    std::vector<std::shared_ptr<Backend>> list;
};

Registry& registry()
{
    static Registry& instance = *new Registry; // never destroyed: threads may outlive main()
    return instance;
}

std::string known_names(const std::vector<std::shared_ptr<Backend>>& list)
{
    std::string names;
    for (const auto& backend : list) names += (names.empty() ? "" : ", ") + backend->name();
    return names.empty() ? "none was built" : names;
}

} // namespace

void register_backend(std::shared_ptr<Backend> backend)
{
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    std::erase_if(all.list, [&](const auto& known) { return known->name() == backend->name(); });
    all.list.push_back(std::move(backend));
}

std::vector<std::shared_ptr<Backend>> backends()
{
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    return all.list;
}

std::string_view backend_of(std::string_view id) noexcept { return id.substr(0, id.find(':')); }

Result<std::shared_ptr<Device>> open_device(std::string_view id)
{
    const std::string_view name = backend_of(id);
    const std::string_view selector = id.substr(std::min(name.size() + 1, id.size()));
    const auto list = backends();
    const auto found = std::ranges::find_if(list, [&](const auto& backend) { return backend->name() == name; });
    if (found == list.end()) {
        return fail(ErrorCode::not_found, "no backend '{}' for device '{}'; backends: {}", name, id, known_names(list));
    }
    return (*found)->open(selector);
}

} // namespace warmgraph::backends
