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
        return wrong_params(kernel, "{} parameters given in packed form, expected one value", kernel.params.size());
    const std::size_t size = kernel.params[0].value.size();
    const std::size_t needed = info.params.empty() ? 1 : info.params.back().offset + info.params.back().size;
    if (size < needed) return wrong_params(kernel, "parameter buffer of {} bytes, it takes {}", size, needed);
    return {};
}

} // namespace

Result<void> check_params(const RawKernel& kernel, const KernelInfo& info)
{
    if (kernel.packed) return check_packed(kernel, info);
    const auto given = static_cast<std::size_t>(
        std::ranges::count_if(kernel.params, [](const RawParam& param) { return param.kind != ParamKind::local; }));
    if (given != info.params.size())
        return wrong_params(kernel, "{} parameters given, it takes {}", given, info.params.size());
    std::size_t index = 0;
    for (const RawParam& param : kernel.params) {
        if (param.kind == ParamKind::local) {
            if (param.local_size == 0) return wrong_params(kernel, "0 bytes of local memory");
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

} // namespace warmgraph::backends::cuda
