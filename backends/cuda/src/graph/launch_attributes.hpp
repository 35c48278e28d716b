// Launch attributes of kernel nodes, and their sizes.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "device/driver.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

struct AttributeInfo {
    CUlaunchAttributeID id;
    std::uint32_t size; ///< used bytes of CUlaunchAttributeValue
    const char* name;
};

/// Attributes of kernel nodes, sorted by id. Programmatic stream serialization is missing: in a graph it is edge data.
inline constexpr std::array k_node_attributes{
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 28, "access policy window"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 4, "cooperative"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 12, "cluster dimension"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 4, "cluster scheduling policy"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_PRIORITY, 4, "priority"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 2, "memory sync domain map"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 4, "memory sync domain"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, 12, "preferred cluster dimension"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 4, "device-updatable kernel node"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 4, "shared memory carve-out"},
    AttributeInfo{CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 4, "NVLink-centric scheduling"},
};

/// Attributes of streams and single launches only: in a graph they become edges or event nodes, or do not exist.
inline constexpr std::array<std::uint32_t, 5> k_launch_only{
    CU_LAUNCH_ATTRIBUTE_IGNORE, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};

/// Returns null for ids that kernel nodes do not have.
[[nodiscard]] const AttributeInfo* attribute_info(std::uint32_t id) noexcept;

/// A limit above all ids of known drivers; our header may know fewer ids.
inline constexpr std::uint32_t k_most_attributes = 64;
/// Attribute values by id. A value that the driver refuses to read is zero.
using AttributeValues = std::array<CUlaunchAttributeValue, k_most_attributes>;
/// Reads k_node_attributes and attributes that only a newer driver knows: the first read(), and the first after
/// ask_again(), tries all other ids. Not thread-safe.
class AttributeReader {
public:
    explicit AttributeReader(const Driver& driver) noexcept : m_driver(driver) {}
    [[nodiscard]] Result<AttributeValues> read(CUgraphNode node);
    /// Call this for another function, whose nodes may have other attributes.
    void ask_again() noexcept { m_has_asked = false; }

private:
    [[nodiscard]] Result<bool> read(CUgraphNode node, std::uint32_t id, CUlaunchAttributeValue& value) const;

    const Driver& m_driver;
    std::vector<std::uint32_t> m_newer;
    bool m_has_asked = false;
};
/// Returns the attributes in `now` that differ from `fresh`, the attributes of an untouched node. not_recordable: an
/// unknown attribute.
[[nodiscard]] Result<std::vector<RawAttribute>> changed_attributes(const AttributeValues& now,
                                                                   const AttributeValues& fresh);
/// Sets attributes and reads them back. driver_failed: the driver holds another value; unsupported: an unknown id.
[[nodiscard]] Result<void> set_attributes(const Driver& driver, CUgraphNode node,
                                          std::span<const RawAttribute> attributes);

} // namespace warmgraph::backends::cuda
