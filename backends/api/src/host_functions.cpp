#include "warmgraph/backends/host_functions.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace warmgraph::backends {

namespace {

struct HostFunctions {
    std::mutex mutex;
    std::map<std::string, HostFunction, std::less<>> functions;
};

HostFunctions& host_functions()
{
    static HostFunctions& instance = *new HostFunctions; // never destroyed: threads may outlive main()
    return instance;
}

} // namespace

Result<void> register_host_function(std::string name, const HostFunction& function)
{
    const bool printable = std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7F; });
    if (name.empty() || name.size() > 255 || !printable)
        return fail(ErrorCode::invalid_argument,
                    "a host function's name has {} characters or unprintable ones, expected 1 to 255 printable ones",
                    name.size());
    if (function.function == nullptr) return fail(ErrorCode::invalid_argument, "host function '{}' is null", name);
    HostFunctions& all = host_functions();
    const std::scoped_lock lock{all.mutex};
    const auto [found, is_new] = all.functions.try_emplace(std::move(name), function);
    if (!is_new && found->second != function)
        return fail(ErrorCode::invalid_argument,
                    "host function '{}' is registered already, with another function or data: choose another name",
                    found->first);
    return {};
}

std::optional<HostFunction> find_host_function(std::string_view name)
{
    HostFunctions& all = host_functions();
    const std::scoped_lock lock{all.mutex};
    const auto found = all.functions.find(name);
    return found == all.functions.end() ? std::nullopt : std::optional{found->second};
}

std::optional<std::string> name_of(const HostFunction& function)
{
    HostFunctions& all = host_functions();
    const std::scoped_lock lock{all.mutex};
    const auto found = std::ranges::find(all.functions, function, [](const auto& item) { return item.second; });
    return found == all.functions.end() ? std::nullopt : std::optional{found->first};
}

} // namespace warmgraph::backends
