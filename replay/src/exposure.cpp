#include "warmgraph/replay/exposure.hpp"

#include <algorithm>

namespace warmgraph::replay {

Result<void> check_exposed(backends::Device& device, ByteView image, std::span<const std::string> vouched)
{
    if (device.exposures() == 0) return {};
    for (const std::string& variable : device.exposed_variables(image)) {
        const bool is_vouched =
            std::ranges::any_of(vouched, [&](const std::string& name) { return name == "*" || name == variable; });
        if (is_vouched) continue;
        return fail(
            ErrorCode::not_recordable,
            "the module variable '{}' may be written or read between calls, unnoticed by a replay, because the program "
            "asked for its address (cudaMemcpyToSymbol does so). Pass it as a kernel parameter, register its module "
            "(Device::register_module), or promise that it does not change (Spec::frozen_variables)",
            variable);
    }
    return {};
}

Result<void> check_exposed(backends::Device& device, const cachefmt::Graph& graph, const ImageSource& images,
                           std::span<const std::string> vouched)
{
    if (device.exposures() == 0) return {};
    for (const auto& image : graph.images) {
        const auto bytes = images(image);
        if (!bytes) return std::unexpected(bytes.error());
        // Variables that hold only addresses of constants are not checked: a library fills them, and each process has
        // its own addresses.
        std::vector<std::string> known{vouched.begin(), vouched.end()};
        for (const auto& variable : image.variables)
            if (!variable.slots.empty()) known.push_back(variable.name);
        if (auto checked = check_exposed(device, *bytes, known); !checked) return checked;
    }
    return {};
}

} // namespace warmgraph::replay
