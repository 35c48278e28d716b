#include "warmgraph/capture/interface.hpp"

#include <algorithm>

#include "warmgraph/guards/interface_text.hpp"

namespace warmgraph {

NamedHandles::const_iterator find_name(const NamedHandles& handles, std::string_view name)
{
    return std::ranges::find(handles, name, [](const auto& one) -> std::string_view { return one.first; });
}

NamedHandles::const_iterator find_handle(const NamedHandles& handles, std::uint64_t handle)
{
    return std::ranges::find(handles, handle, [](const auto& one) { return one.second; });
}

std::string Interface::text() const
{
    std::vector<cachefmt::RegionKind> kinds;
    kinds.reserve(regions.size());
    for (const RegionDecl& region : regions) kinds.push_back(region.kind);
    return guards::interface_text(kinds, scalars, ranges);
}

std::optional<std::size_t> Interface::region(std::string_view name) const noexcept
{
    const auto found = std::ranges::find(regions, name, &RegionDecl::name);
    if (found == regions.end()) return std::nullopt;
    return static_cast<std::size_t>(found - regions.begin());
}

std::vector<NamedMemory> named(const std::vector<NamedConstant>& constants)
{
    std::vector<NamedMemory> result;
    for (const NamedConstant& constant : constants)
        if (!constant.memory.address.is_null()) result.emplace_back(constant.name, constant.memory);
    return result;
}

std::vector<std::int64_t> sizes_of(const guards::TensorArg& tensor)
{
    return {tensor.sizes.begin(), tensor.sizes.begin() + tensor.rank};
}

} // namespace warmgraph
