#pragma once

#include <cstdint>

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

} // namespace warmgraph::python
