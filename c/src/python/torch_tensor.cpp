#include "torch_tensor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

namespace warmgraph::python {

TorchTensors& TorchTensors::of_process()
{
    static TorchTensors tensors;
    return tensors;
}

int TorchTensors::read(Object* tensor, DlTensor& found) const
{
    return is_read(tensor, found) ? 0 : m_torch.otherwise(tensor, &found);
}

bool TorchTensors::is_there(Object* tensor, const wg_tensor_look& look) const
{
    if (!is_of_known_kind(tensor)) return false;
    void* const handle = handle_of(tensor);
    std::int32_t type = 0, index = 0, layout = 0, number = 0;
    std::int64_t rank = 0;
    std::int64_t *sizes = nullptr, *strides = nullptr;
    void* data = nullptr;
    const bool is_on_host = look.device_type == k_dl_cpu;
    // In this order no function throws. A function that throws would print its exception.
    return *static_cast<void**>(handle) != nullptr && (is_on_host || look.device_type == k_dl_cuda) &&
           m_torch.get_device_type(handle, &type) == 0 && type == (is_on_host ? m_torch.cpu : m_torch.cuda) &&
           m_torch.get_device_index(handle, &index) == 0 && (is_on_host || index == look.device_id) &&
           m_torch.get_layout(handle, &layout) == 0 && layout == m_torch.strided &&
           m_torch.get_dtype(handle, &number) == 0 && is_of_type(number, look) && m_torch.get_dim(handle, &rank) == 0 &&
           rank == look.rank && m_torch.get_sizes(handle, &sizes) == 0 && are_same(sizes, look.sizes, look.rank) &&
           m_torch.get_strides(handle, &strides) == 0 && are_same(strides, look.strides, look.rank) &&
           m_torch.get_data_ptr(handle, &data) == 0 && std::bit_cast<std::uint64_t>(data) == *look.address;
}

/// Compares a type by PyTorch's number for it.
bool TorchTensors::is_of_type(std::int32_t number, const wg_tensor_look& look) const
{
    return number >= 0 && static_cast<std::size_t>(number) < std::size(m_torch.types) && look.lanes == 1 &&
           look.bits != 0 && m_torch.types[number].code == look.code && m_torch.types[number].bits == look.bits;
}

bool TorchTensors::requires_grad(Object* tensor) const
{
    return m_torch.requires_grad(*static_cast<void**>(handle_of(tensor))) != 0;
}

bool TorchTensors::is_within(Object* tensor, std::uint64_t bytes) const
{
    void* const handle = handle_of(tensor);
    const std::byte* const body = *static_cast<const std::byte**>(handle);
    std::int64_t *sizes = nullptr, *strides = nullptr;
    if (m_torch.get_sizes(handle, &sizes) != 0 || m_torch.get_strides(handle, &strides) != 0) return false;
    return std::ranges::all_of(std::array{sizes, strides}, [&](const std::int64_t* one) {
        const auto at = std::bit_cast<std::uint64_t>(one) -
                        std::bit_cast<std::uint64_t>(body); // a huge number if it lies before the body
        return at < bytes;
    });
}

bool TorchTensors::is_at(Object* tensor, std::uint64_t address) const
{
    void* data = nullptr;
    return m_torch.get_data_ptr(handle_of(tensor), &data) == 0 && std::bit_cast<std::uint64_t>(data) == address;
}

/// A function is called only if it cannot fail: it would print its exception.
bool TorchTensors::is_read(Object* tensor, DlTensor& found) const
{
    if (!is_of_known_kind(tensor)) return false;
    void* const handle = handle_of(tensor);
    if (*static_cast<void**>(handle) == nullptr || !is_device_read(handle, found) || !is_type_read(handle, found))
        return false;
    std::int64_t rank = 0;
    std::int64_t *sizes = nullptr, *strides = nullptr;
    if (m_torch.get_dim(handle, &rank) != 0 || m_torch.get_sizes(handle, &sizes) != 0 ||
        m_torch.get_strides(handle, &strides) != 0 || m_torch.get_data_ptr(handle, &found.data) != 0)
        return false;
    found.rank = static_cast<std::int32_t>(rank);
    found.sizes = sizes;
    found.strides = strides;
    found.byte_offset = 0;
    return true;
}

/// Objects of derived classes are not accepted: their at::Tensor may lie elsewhere.
bool TorchTensors::is_of_known_kind(Object* object) const
{
    const Object* const kind = Api::kind_of(object);
    return kind == m_torch.kinds[0] || kind == m_torch.kinds[1];
}

bool TorchTensors::is_device_read(void* handle, DlTensor& found) const
{
    std::int32_t type = 0, index = 0, layout = 0;
    if (m_torch.get_device_type(handle, &type) != 0 || m_torch.get_device_index(handle, &index) != 0 ||
        m_torch.get_layout(handle, &layout) != 0 || layout != m_torch.strided)
        return false;
    const bool is_on_host = type == m_torch.cpu;
    found.device_type = is_on_host ? k_dl_cpu : k_dl_cuda;
    found.device_id = is_on_host ? 0 : index;
    return is_on_host || type == m_torch.cuda;
}

bool TorchTensors::is_type_read(void* handle, DlTensor& found) const
{
    std::int32_t number = 0;
    if (m_torch.get_dtype(handle, &number) != 0 || number < 0 ||
        static_cast<std::size_t>(number) >= std::size(m_torch.types))
        return false;
    found.code = m_torch.types[number].code;
    found.bits = m_torch.types[number].bits;
    found.lanes = 1;
    return found.bits != 0;
}

} // namespace warmgraph::python
