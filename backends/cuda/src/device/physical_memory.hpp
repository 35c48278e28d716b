// Helpers for memory that is mapped to addresses of a program's choice (cuMemCreate, cuMemMap).
#pragma once

#include <cstdint>

#include "device/core.hpp"

namespace warmgraph::backends::cuda {

/// Describes memory of the core's device for cuMemCreate.
[[nodiscard]] inline CUmemAllocationProp device_memory(const Core& core)
{
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {};
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.location.id = core.device;
    return wanted;
}

/// Lets the core's device read and write a mapped range.
[[nodiscard]] inline Result<void> allow_access(const Core& core, std::uint64_t start, std::uint64_t size)
{
    CUmemAccessDesc access{};
    access.location = device_memory(core).location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const Driver& driver = *core.driver;
    return driver.call("cuMemSetAccess", driver.cuMemSetAccess, CUdeviceptr{start}, size, &access, std::size_t{1});
}

[[nodiscard]] inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept
{
    return (value + unit - 1) / unit * unit;
}

} // namespace warmgraph::backends::cuda
