// Launch attributes of kernel nodes: which there are, how many of their bytes are used.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "driver.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

struct AttributeInfo {
    CUlaunchAttributeID id;
    std::uint32_t size; ///< bytes of CUlaunchAttributeValue that count
    const char* name;
};

/// Those that kernel nodes have, by id. Programmatic stream serialization is not among them: in a graph it is edge data.
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

/// Null for an id that no kernel node has.
[[nodiscard]] const AttributeInfo* attribute_info(std::uint32_t id) noexcept;

/// As k_node_attributes; all zero where the driver refuses to read one.
using AttributeValues = std::array<CUlaunchAttributeValue, k_node_attributes.size()>;
[[nodiscard]] Result<AttributeValues> read_attributes(const Driver& driver, CUgraphNode node);
/// Those of `now` that are not as in `fresh`, a node to which nothing was done.
[[nodiscard]] std::vector<RawAttribute> changed_attributes(const AttributeValues& now, const AttributeValues& fresh);
/// Sets and reads back. driver_failed when the driver holds something else, unsupported for an unknown id.
[[nodiscard]] Result<void> set_attributes(const Driver& driver, CUgraphNode node,
                                          std::span<const RawAttribute> attributes);

} // namespace warmgraph::backends::cuda
