#include "registered_modules.hpp"

#include <algorithm>
#include <string>

#include "warmgraph/cachefmt/image_use.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

namespace {

using Modules = std::vector<std::shared_ptr<backends::Module>>;

/// Whether the module has this image. The digest is that of the whole image, or of the image with only the kernels in
/// use.
bool has_image(backends::Module& module, const Digest& digest, const std::vector<std::string>& kernels)
{
    const auto is_it = [&digest](const Result<Bytes>& image) { return image && sha256(*image) == digest; };
    return is_it(module.image_of(kernels)) || is_it(module.image());
}

Result<std::shared_ptr<backends::Module>> find_registered_module(const Modules& registered,
                                                                 const cachefmt::ImageRef& image,
                                                                 const std::vector<std::string>& kernels)
{
    std::shared_ptr<backends::Module> found;
    std::size_t same = 0; // modules with the same image and equal variables
    std::size_t alike = 0;
    std::string difference;
    auto recorded = image.variables;
    std::ranges::sort(recorded, {}, &cachefmt::ModuleVariable::name);
    for (const auto& module : registered) {
        if (!has_image(*module, image.digest, kernels)) continue;
        ++alike;
        auto now = module->changed_variables();
        if (!now) return within("image " + short_hex(image.digest), now.error());
        std::ranges::sort(*now, {}, &cachefmt::ModuleVariable::name);
        if (*now != recorded) {
            difference = cachefmt::first_difference(recorded, *now);
            continue;
        }
        found = module;
        ++same;
    }
    if (same == 0 && !difference.empty())
        return fail(ErrorCode::not_recordable,
                    "the module variable '{}' has other contents in this process than when it was recorded: write it "
                    "before the first call, or pass its value as a parameter",
                    difference);
    // The present contents of variables do not show which of the modules the function uses.
    if (alike > 1 && found != nullptr && found->has_variables())
        return fail(ErrorCode::not_recordable,
                    "{} registered modules have the same code, but their variables may have different values: register "
                    "only the module that the function uses",
                    alike);
    return found;
}

} // namespace

Result<Modules> find_registered_modules(backends::Device& device, const cachefmt::Graph& graph)
{
    Modules result(graph.images.size());
    const Modules registered = device.registered_modules();
    if (registered.empty()) return result;
    const auto kernels = cachefmt::kernels_in_use(graph.nodes, graph.images.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        auto module = find_registered_module(registered, graph.images[i], kernels[i]);
        if (!module) return std::unexpected(module.error());
        result[i] = std::move(*module);
    }
    return result;
}

Result<bool> binds_registered_modules(backends::Device& device, const cachefmt::Graph& graph)
{
    auto found = find_registered_modules(device, graph);
    if (!found) return std::unexpected(found.error());
    return std::ranges::any_of(*found, [](const auto& module) { return module != nullptr; });
}

} // namespace warmgraph::replay
