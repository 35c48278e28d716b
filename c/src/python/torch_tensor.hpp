// PyTorch's tensors, read by PyTorch's own C functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "api.hpp"
#include "dl_tensor.hpp"
#include "warmgraph/python.h"

namespace warmgraph::python {

/// The PyTorch of the process. The caller holds Python's lock.
class TorchTensors {
public:
    [[nodiscard]] static TorchTensors& of_process();

    void use(const wg_torch_tensors& torch) { m_torch = torch; }
    /// Describes a tensor, as a wg_dltensor_reader does. It is quicker than DLPack's exchange.
    [[nodiscard]] int read(Object* tensor, DlTensor& found) const;
    /// Whether the tensor has this description and lies at its address. False also if only read() can tell. REQUIRES:
    /// use() was called.
    [[nodiscard]] bool is_there(Object* tensor, const wg_tensor_look& look) const;
    /// REQUIRES: the object is a tensor, and use() was called.
    [[nodiscard]] bool requires_grad(Object* tensor) const;
    /// Returns the object that the tensor points to (c10::TensorImpl). REQUIRES: use() was called, and is_there() was
    /// true once for a tensor of the same class.
    [[nodiscard]] const std::byte* body_of(Object* tensor) const
    {
        return *static_cast<const std::byte**>(handle_of(tensor));
    }
    /// Whether the tensor's sizes and strides lie in the first `bytes` bytes of its body. REQUIRES: is_there().
    [[nodiscard]] bool is_within(Object* tensor, std::uint64_t bytes) const;
    /// Whether the tensor lies at the address; nothing else is compared. REQUIRES: the tensor has a body.
    [[nodiscard]] bool is_at(Object* tensor, std::uint64_t address) const;

private:
    [[nodiscard]] bool is_read(Object* tensor, DlTensor& found) const;
    [[nodiscard]] bool is_of_known_kind(Object* object) const;
    [[nodiscard]] bool is_of_type(std::int32_t number, const wg_tensor_look& look) const;
    [[nodiscard]] bool is_device_read(void* handle, DlTensor& found) const;
    [[nodiscard]] bool is_type_read(void* handle, DlTensor& found) const;
    /// Returns an at::Tensor*, which is the same as an AtenTensorHandle.
    [[nodiscard]] void* handle_of(Object* tensor) const { return static_cast<std::byte*>(tensor) + m_torch.at; }

    wg_torch_tensors m_torch{};
};

constexpr std::int32_t k_dl_cpu = 1, k_dl_cuda = 2; // DLDeviceType

} // namespace warmgraph::python
