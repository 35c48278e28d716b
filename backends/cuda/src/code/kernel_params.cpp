#include "code/kernel_params.hpp"

#include <algorithm>

#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::backends::cuda {
namespace {

template <class... Args>
std::unexpected<Error> wrong_params(const RawKernel& kernel, fmt::format_string<Args...> text, Args&&... args)
{
    return fail(ErrorCode::invalid_argument, "kernel '{}': {}", readable_kernel_name(kernel.kernel),
                fmt::format(text, std::forward<Args>(args)...));
}

Result<void> check_packed(const RawKernel& kernel, const KernelInfo& info)
{
    if (kernel.params.size() != 1 || kernel.params[0].kind != ParamKind::value)
        return wrong_params(kernel, "{} parameters given in packed form, expected one", kernel.params.size());
    const std::size_t size = kernel.params[0].value.size();
    const std::size_t needed = info.params.empty() ? 1 : info.params.back().offset + info.params.back().size;
    if (size < needed)
        return wrong_params(kernel, "the parameter buffer has {} bytes, the kernel takes {}", size, needed);
    return {};
}

} // namespace

Result<void> check_params(const RawKernel& kernel, const KernelInfo& info)
{
    if (kernel.packed) return check_packed(kernel, info);
    const auto given = static_cast<std::size_t>(
        std::ranges::count_if(kernel.params, [](const RawParam& param) { return param.kind != ParamKind::local; }));
    if (given != info.params.size())
        return wrong_params(kernel, "{} parameters given, the kernel takes {}", given, info.params.size());
    std::size_t index = 0;
    for (const RawParam& param : kernel.params) {
        if (param.kind == ParamKind::local) {
            if (param.local_size == 0) return wrong_params(kernel, "local memory of 0 bytes, expected 1 or more");
            continue;
        }
        const bool is_memory = param.kind == ParamKind::memory;
        const std::size_t size = is_memory ? sizeof(CUdeviceptr) : param.value.size();
        const std::size_t expected = info.params[index].size;
        if (size != expected)
            return wrong_params(kernel, "parameter {} is {} of {} bytes, the kernel takes {}", index,
                                is_memory ? "a pointer" : "a value", size, expected);
        ++index;
    }
    return {};
}

std::uint64_t shared_bytes_of(const RawKernel& kernel) noexcept
{
    std::uint64_t bytes = kernel.shared_bytes;
    for (const RawParam& param : kernel.params)
        if (param.kind == ParamKind::local) bytes += param.local_size;
    return bytes;
}

const CUDA_KERNEL_NODE_PARAMS& KernelParams::fill(CUfunction function, const RawKernel& kernel)
{
    m_native.func = function;
    m_native.gridDimX = kernel.grid[0];
    m_native.gridDimY = kernel.grid[1];
    m_native.gridDimZ = kernel.grid[2];
    m_native.blockDimX = kernel.block[0];
    m_native.blockDimY = kernel.block[1];
    m_native.blockDimZ = kernel.block[2];
    m_native.sharedMemBytes = static_cast<unsigned int>(shared_bytes_of(kernel));
    // The driver's type is void*, but the driver only reads the bytes.
    const auto readable = [](const std::byte* bytes) { return static_cast<void*>(const_cast<std::byte*>(bytes)); };
    if (kernel.packed) {
        m_packed_size = kernel.params[0].value.size();
        m_extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, readable(kernel.params[0].value.data()), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &m_packed_size, CU_LAUNCH_PARAM_END};
        m_native.kernelParams = nullptr;
        m_native.extra = m_extra.data();
        return m_native;
    }
    reserve(kernel.params.size());
    std::size_t count = 0;
    for (const RawParam& param : kernel.params) {
        if (param.kind == ParamKind::local) continue;
        if (param.kind == ParamKind::memory) {
            m_addresses[count] = param.address.flat();
            m_pointers[count] = &m_addresses[count];
        } else {
            m_pointers[count] = readable(param.value.data());
        }
        ++count;
    }
    m_native.kernelParams = count == 0 ? nullptr : m_pointers.data();
    m_native.extra = nullptr;
    return m_native;
}

} // namespace warmgraph::backends::cuda
