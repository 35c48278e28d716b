#pragma once

#include <bit>
#include <cstdint>

#include "warmgraph/python.h"

namespace warmgraph::python {

/// DLTensor of dlpack.h, version 1 (https://dmlc.github.io/dlpack/latest/c_api.html).
struct DlTensor {
    void* data;
    std::int32_t device_type;
    std::int32_t device_id;
    std::int32_t rank;
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
    const std::int64_t* sizes;
    const std::int64_t* strides; // NULL: contiguous, before DLPack 1.2
    std::uint64_t byte_offset;
};
static_assert(sizeof(DlTensor) == 48);

/// Compares a few numbers: a call of memcmp would take longer.
[[nodiscard]] inline bool are_same(const std::int64_t* one, const std::int64_t* other, std::int32_t count)
{
    for (std::int32_t i = 0; i < count; ++i)
        if (one[i] != other[i]) return false;
    return true;
}

/// Compares all but the address.
[[nodiscard]] inline bool is_as_described(const DlTensor& tensor, const wg_tensor_look& look)
{
    return tensor.device_type == look.device_type && tensor.device_id == look.device_id && tensor.rank == look.rank &&
           tensor.code == look.code && tensor.bits == look.bits && tensor.lanes == look.lanes &&
           (tensor.rank == 0 || (tensor.strides != nullptr && are_same(tensor.sizes, look.sizes, tensor.rank) &&
                                 are_same(tensor.strides, look.strides, tensor.rank)));
}

/// Returns the address of the first element.
[[nodiscard]] inline std::uint64_t address_of(const DlTensor& tensor)
{
    return std::bit_cast<std::uint64_t>(tensor.data) + tensor.byte_offset;
}

/// Compares the address too.
[[nodiscard]] inline bool is_there(const DlTensor& tensor, const wg_tensor_look& look)
{
    return is_as_described(tensor, look) && address_of(tensor) == *look.address;
}

} // namespace warmgraph::python
