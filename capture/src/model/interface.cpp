#include "warmgraph/capture/interface.hpp"

#include <algorithm>

#include "warmgraph/capture/numbers.hpp"

namespace warmgraph {

NamedHandles::const_iterator find_name(const NamedHandles& handles, std::string_view name)
{
    return std::ranges::find(handles, name, [](const auto& one) -> std::string_view { return one.first; });
}

NamedHandles::const_iterator find_handle(const NamedHandles& handles, std::uint64_t handle)
{
    return std::ranges::find(handles, handle, [](const auto& one) { return one.second; });
}

namespace {

std::string_view kind_name(cachefmt::RegionKind kind) noexcept
{
    switch (kind) {
    case cachefmt::RegionKind::input: return "input";
    case cachefmt::RegionKind::output: return "output";
    case cachefmt::RegionKind::state: return "state";
    default: return "weights";
    }
}

} // namespace

std::string Interface::text() const
{
    // Runs of one kind: the tensors' names are guards of their own, and a model may have thousands of weights.
    std::string text;
    for (std::size_t i = 0; i < regions.size();) {
        std::size_t end = i + 1;
        while (end < regions.size() && regions[end].kind == regions[i].kind) ++end;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", end - i, kind_name(regions[i].kind));
        i = end;
    }
    for (std::size_t i = 0; i < scalars.size(); ++i)
        text +=
            fmt::format("; scalar {} {} [{}, {}]", scalars[i].name, to_string(scalars[i].dtype),
                        number_text(scalars[i].dtype, ranges[i].low), number_text(scalars[i].dtype, ranges[i].high));
    return text;
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
