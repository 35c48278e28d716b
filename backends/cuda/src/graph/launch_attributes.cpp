#include "graph/launch_attributes.hpp"

#include <algorithm>
#include <cstddef>

namespace warmgraph::backends::cuda {

static_assert(offsetof(CUaccessPolicyWindow, missProp) + sizeof(CUaccessProperty) == 28);
static_assert(sizeof(CUlaunchMemSyncDomainMap) == 2);
static_assert(launch_attribute::k_cooperative == CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
static_assert(launch_attribute::k_cluster_dimension == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(launch_attribute::k_programmatic_serialization == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

const AttributeInfo* attribute_info(std::uint32_t id) noexcept
{
    const auto* const found = std::ranges::find_if(
        k_node_attributes, [id](const AttributeInfo& info) { return static_cast<std::uint32_t>(info.id) == id; });
    return found == k_node_attributes.end() ? nullptr : &*found;
}

/// Returns false if the driver or the device does not know the attribute: then it was never set.
Result<bool> AttributeReader::read(CUgraphNode node, std::uint32_t id, CUlaunchAttributeValue& value) const
{
    // The header's enumeration has fewer ids than newer drivers.
    using WithNumber = CUresult (*)(CUgraphNode, std::uint32_t, CUlaunchAttributeValue*);
    const CUresult status =
        m_driver.status("cuGraphKernelNodeGetAttribute",
                        reinterpret_cast<WithNumber>(m_driver.cuGraphKernelNodeGetAttribute), node, id, &value);
    if (status == CUDA_SUCCESS) return true;
    value = {};
    if (status == CUDA_ERROR_INVALID_VALUE || status == CUDA_ERROR_NOT_SUPPORTED) return false;
    return within(fmt::format("launch attribute {}", id), m_driver.error("cuGraphKernelNodeGetAttribute", status));
}

Result<AttributeValues> AttributeReader::read(CUgraphNode node)
{
    AttributeValues values{};
    const auto at = [&](std::uint32_t id) { return read(node, id, values[id]); };
    for (const AttributeInfo& info : k_node_attributes)
        if (auto known = at(static_cast<std::uint32_t>(info.id)); !known) return std::unexpected(known.error());
    if (m_has_asked) {
        for (const std::uint32_t id : m_newer)
            if (auto known = at(id); !known) return std::unexpected(known.error());
        return values;
    }
    for (std::uint32_t id = 0; id < k_most_attributes; ++id) {
        const bool is_launch_only = std::ranges::find(k_launch_only, id) != k_launch_only.end();
        if (is_launch_only || attribute_info(id) != nullptr) continue;
        auto known = at(id);
        if (!known) return std::unexpected(known.error());
        if (*known && std::ranges::find(m_newer, id) == m_newer.end()) m_newer.push_back(id);
    }
    m_has_asked = true;
    return values;
}

Result<std::vector<RawAttribute>> changed_attributes(const AttributeValues& now, const AttributeValues& fresh)
{
    std::vector<RawAttribute> changed;
    for (std::uint32_t id = 0; id < k_most_attributes; ++id) {
        const AttributeInfo* const info = attribute_info(id);
        const std::size_t size = info != nullptr ? info->size : sizeof(CUlaunchAttributeValue);
        if (std::memcmp(&now[id], &fresh[id], size) == 0) continue;
        if (info == nullptr)
            return fail(ErrorCode::not_recordable,
                        "it is launched with attribute {}, which is newer than this library: launch it without this "
                        "attribute, or use a newer version of warmgraph",
                        id);
        const ByteView bytes = std::as_bytes(std::span(&now[id], 1)).first(size);
        changed.push_back({id, Bytes(bytes.begin(), bytes.end())});
    }
    // Every captured launch has the preference "spread", which means nothing without clusters.
    if (now[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim.x == 0)
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
            return fail(ErrorCode::unsupported, "launch attribute {} is not an attribute of kernel nodes",
                        attribute.id);
        if (attribute.value.size() != info->size)
            return fail(ErrorCode::invalid_argument, "attribute '{}' of {} bytes, expected {}", info->name,
                        attribute.value.size(), info->size);
        CUlaunchAttributeValue value{};
        std::memcpy(&value, attribute.value.data(), info->size);
        auto set =
            driver.call("cuGraphKernelNodeSetAttribute", driver.cuGraphKernelNodeSetAttribute, node, info->id, &value);
        // The driver may refuse an attribute that was compiled into the kernel (__cluster_dims__): compare it instead.
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
