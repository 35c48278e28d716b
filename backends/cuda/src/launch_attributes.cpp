#include "launch_attributes.hpp"

#include <algorithm>
#include <cstddef>

namespace warmgraph::backends::cuda {

static_assert(offsetof(CUaccessPolicyWindow, missProp) + sizeof(CUaccessProperty) == 28);
static_assert(sizeof(CUlaunchMemSyncDomainMap) == 2);

const AttributeInfo* attribute_info(std::uint32_t id) noexcept
{
    const auto* const found =
        std::ranges::find(k_node_attributes, static_cast<CUlaunchAttributeID>(id), &AttributeInfo::id);
    return found == k_node_attributes.end() ? nullptr : &*found;
}

Result<AttributeValues> read_attributes(const Driver& driver, CUgraphNode node)
{
    AttributeValues values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const CUresult status = driver.status("cuGraphKernelNodeGetAttribute", driver.cuGraphKernelNodeGetAttribute,
                                              node, k_node_attributes[i].id, &values[i]);
        if (status == CUDA_SUCCESS) continue;
        // This driver or device does not know it, so nobody has set it. Any other failure would lose it.
        if (status != CUDA_ERROR_INVALID_VALUE && status != CUDA_ERROR_NOT_SUPPORTED)
            return within(fmt::format("attribute '{}'", k_node_attributes[i].name),
                          driver.error("cuGraphKernelNodeGetAttribute", status));
        values[i] = {};
    }
    return values;
}

std::vector<RawAttribute> changed_attributes(const AttributeValues& now, const AttributeValues& fresh)
{
    std::vector<RawAttribute> changed;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const AttributeInfo& info = k_node_attributes[i];
        if (std::memcmp(&now[i], &fresh[i], info.size) == 0) continue;
        const ByteView bytes = std::as_bytes(std::span(&now[i], 1)).first(info.size);
        changed.push_back({static_cast<std::uint32_t>(info.id), Bytes(bytes.begin(), bytes.end())});
    }
    // Every captured launch prefers to spread its clusters; without clusters that says nothing.
    const auto clusters = static_cast<std::size_t>(
        std::ranges::find(k_node_attributes, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &AttributeInfo::id) -
        k_node_attributes.begin());
    if (now[clusters].clusterDim.x == 0)
        std::erase_if(changed, [](const RawAttribute& attribute) {
            return attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
        });
    return changed;
}

Result<void> set_attributes(const Driver& driver, CUgraphNode node, std::span<const RawAttribute> attributes)
{
    for (const RawAttribute& attribute : attributes) {
        const AttributeInfo* const info = attribute_info(attribute.id);
        if (info == nullptr)
            return fail(ErrorCode::unsupported, "launch attribute {} is not one that kernel nodes have", attribute.id);
        if (attribute.value.size() != info->size)
            return fail(ErrorCode::invalid_argument, "attribute '{}' of {} bytes, expected {}", info->name,
                        attribute.value.size(), info->size);
        CUlaunchAttributeValue value{};
        std::memcpy(&value, attribute.value.data(), info->size);
        auto set =
            driver.call("cuGraphKernelNodeSetAttribute", driver.cuGraphKernelNodeSetAttribute, node, info->id, &value);
        // What a kernel was compiled with (__cluster_dims__) may be refused to be set, and is there all the same.
        CUlaunchAttributeValue held{};
        const CUresult status =
            driver.status("cuGraphKernelNodeGetAttribute", driver.cuGraphKernelNodeGetAttribute, node, info->id, &held);
        if (status == CUDA_SUCCESS && std::memcmp(&held, attribute.value.data(), info->size) == 0) continue;
        if (!set) return within(fmt::format("attribute '{}'", info->name), set.error());
        if (status != CUDA_SUCCESS)
            return within(fmt::format("attribute '{}'", info->name),
                          driver.error("cuGraphKernelNodeGetAttribute", status));
        return fail(ErrorCode::driver_failed, "attribute '{}' was set to {:02x} and reads back as {:02x}", info->name,
                    fmt::join(std::as_bytes(std::span(attribute.value)), " "),
                    fmt::join(std::as_bytes(std::span(&held, 1)).first(info->size), " "));
    }
    return {};
}

} // namespace warmgraph::backends::cuda
