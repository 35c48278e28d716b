// PyTorch's tensors, read by PyTorch's own C functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "api.hpp"
#include "dl_tensor.hpp"
#include "warmgraph/python.h"

namespace warmgraph::python {

/// The process's PyTorch. Used with Python's lock held.
class TorchTensors {
public:
    [[nodiscard]] static TorchTensors& of_process();

    void use(const wg_torch_tensors& torch) { m_torch = torch; }
    /// As wg_dltensor_reader, and sooner than DLPack's exchange.
    [[nodiscard]] int read(Object* tensor, DlTensor& found) const;
    /// It looks as it did, and lies where it lay. False also where read() has to be asked. REQUIRES: use() was called.
    [[nodiscard]] bool is_there(Object* tensor, const wg_tensor_look& look) const;
    /// Of a tensor. REQUIRES: use() was called.
    [[nodiscard]] bool requires_grad(Object* tensor) const;
    /// What it points to (c10::TensorImpl). REQUIRES: use() was called, and is_there() once, of an object of its class.
    [[nodiscard]] const std::byte* body_of(Object* tensor) const
    {
        return *static_cast<const std::byte**>(handle_of(tensor));
    }
    /// Its sizes and strides are among the first `bytes` of its body. REQUIRES: is_there().
    [[nodiscard]] bool is_within(Object* tensor, std::uint64_t bytes) const;
    /// The address alone is asked. REQUIRES: a body.
    [[nodiscard]] bool is_at(Object* tensor, std::uint64_t address) const;

private:
    [[nodiscard]] bool is_read(Object* tensor, DlTensor& found) const;
    [[nodiscard]] bool is_of_known_kind(Object* object) const;
    [[nodiscard]] bool is_of_type(std::int32_t number, const wg_tensor_look& look) const;
    [[nodiscard]] bool is_device_read(void* handle, DlTensor& found) const;
    [[nodiscard]] bool is_type_read(void* handle, DlTensor& found) const;
    /// An at::Tensor*, which AtenTensorHandle is too.
    [[nodiscard]] void* handle_of(Object* tensor) const { return static_cast<std::byte*>(tensor) + m_torch.at; }

    wg_torch_tensors m_torch{};
};

constexpr std::int32_t k_dl_cpu = 1, k_dl_cuda = 2; // DLDeviceType

} // namespace warmgraph::python
