#include "warmgraph/cachefmt/image_use.hpp"

#include <algorithm>

namespace warmgraph::cachefmt {

std::vector<std::vector<std::string>> kernels_in_use(std::span<const Node> nodes, std::size_t images)
{
    std::vector<std::vector<std::string>> result(images);
    for (const auto& node : nodes)
        if (const auto* const kernel = std::get_if<KernelNode>(&node))
            if (kernel->image < images) result[kernel->image].push_back(kernel->kernel);
    for (auto& kernels : result) {
        std::ranges::sort(kernels);
        const auto repeated = std::ranges::unique(kernels);
        kernels.erase(repeated.begin(), repeated.end());
    }
    return result;
}

std::string first_difference(std::span<const ModuleVariable> before, std::span<const ModuleVariable> after)
{
    for (const auto list : {after, before})
        for (const auto& variable : list)
            if (std::ranges::count(before, variable) + std::ranges::count(after, variable) != 2) return variable.name;
    return {};
}

std::vector<Digest> blobs_of(const Graph& graph)
{
    std::vector<Digest> result;
    for (const ImageRef& image : graph.images) result.push_back(image.digest);
    for (const Region& region : graph.regions)
        if (region.digest != Digest{}) result.push_back(region.digest);
    return result;
}

} // namespace warmgraph::cachefmt
