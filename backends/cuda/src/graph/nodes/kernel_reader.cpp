#include "graph/nodes/kernel_reader.hpp"

#include <algorithm>
#include <utility>

#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::backends::cuda {
namespace {

constexpr int k_default_shared = 48 * 1024; // bytes that a block may use without a raised limit, static ones included

Result<std::vector<std::uint32_t>> param_sizes(const Driver& driver, CUfunction function)
{
    std::vector<std::uint32_t> sizes;
    for (std::size_t offset = 0, size = 0;; sizes.push_back(static_cast<std::uint32_t>(size))) {
        const CUresult status =
            driver.status("cuFuncGetParamInfo", driver.cuFuncGetParamInfo, function, sizes.size(), &offset, &size);
        if (status == CUDA_ERROR_INVALID_VALUE) return sizes; // there are no more parameters
        if (status != CUDA_SUCCESS) return std::unexpected(driver.error("cuFuncGetParamInfo", status));
    }
}

/// The limit of dynamic shared memory belongs to the loaded function, and a launch of other code may have raised it.
/// Records only the limit that this launch needs.
void limit_to_launch(std::vector<FunctionAttribute>& attributes, int free_shared, unsigned int needed)
{
    const auto limit = std::ranges::find(attributes, std::uint32_t{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
                                         &FunctionAttribute::id);
    if (limit == attributes.end()) return;
    if (std::cmp_greater(needed, free_shared))
        limit->value = static_cast<int>(needed);
    else
        attributes.erase(limit);
}

/// Returns attributes that differ from those of a fresh function. `free_shared`: bytes of dynamic shared memory that a
/// launch may use without a raised limit.
Result<std::vector<FunctionAttribute>> read_function_attributes(const Driver& driver, CUfunction function,
                                                                int& free_shared)
{
    Result<void> done; // the first failure, except for attributes that this driver does not know
    const auto get = [&](CUfunction_attribute id, int otherwise) {
        int value = otherwise;
        const CUresult status = driver.status("cuFuncGetAttribute", driver.cuFuncGetAttribute, &value, id, function);
        if (status == CUDA_SUCCESS) return value;
        if (done && status != CUDA_ERROR_INVALID_VALUE && status != CUDA_ERROR_NOT_SUPPORTED)
            done = std::unexpected(driver.error("cuFuncGetAttribute", status));
        return otherwise;
    };
    std::vector<FunctionAttribute> found;
    const auto keep = [&](CUfunction_attribute id, int value) {
        found.push_back({static_cast<std::uint32_t>(id), value});
    };
    free_shared = k_default_shared - get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 0);
    if (const int limit = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, free_shared); limit > free_shared)
        keep(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit);
    if (const int carveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1); carveout != -1)
        keep(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout);
    for (const CUfunction_attribute id :
         {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
          CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
          CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}) {
        if (const int value = get(id, 0); value != 0) keep(id, value);
    }
    if (!done) return std::unexpected(done.error());
    return found;
}

/// Reads CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE from an `extra` list.
Result<Bytes> packed_buffer(void** extra)
{
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
        if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = at[1];
        else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *static_cast<const std::size_t*>(at[1]);
        else
            return fail(ErrorCode::not_recordable, "launch parameters hold item {}, expected buffer pointer and size",
                        reinterpret_cast<std::uintptr_t>(*at));
    }
    if (buffer == nullptr && size != 0)
        return fail(ErrorCode::driver_failed, "the driver gives no buffer for {} bytes of launch parameters", size);
    const auto* const bytes = static_cast<const std::byte*>(buffer);
    return Bytes(bytes, bytes + size);
}

/// The driver returns the parameters in one of two forms. If it returns both, use kernelParams, whose sizes the driver
/// knows.
Result<void> read_params(const CUDA_KERNEL_NODE_PARAMS& native, const std::vector<std::uint32_t>& sizes,
                         RawKernel& kernel)
{
    if (native.kernelParams != nullptr && !sizes.empty()) {
        kernel.params.reserve(sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto* const bytes = static_cast<const std::byte*>(native.kernelParams[i]);
            kernel.params.push_back({ParamKind::value, Bytes(bytes, bytes + sizes[i]), {}, 0});
        }
        return {};
    }
    if (native.extra != nullptr) {
        auto buffer = packed_buffer(native.extra);
        if (!buffer) return std::unexpected(buffer.error());
        if (buffer->empty() && sizes.empty()) return {};
        kernel.params.push_back({ParamKind::value, std::move(*buffer), {}, 0});
        kernel.packed = true;
        return {};
    }
    if (!sizes.empty())
        return fail(ErrorCode::driver_failed, "the driver gives no values for {} parameters", sizes.size());
    return {};
}

std::string kernel_text(std::string_view name) { return fmt::format("kernel '{}'", readable_kernel_name(name)); }

/// Asks only for the name: in the device's own context the driver may refuse other questions about the function.
std::unexpected<Error> of_another_context(const Driver& driver, CUfunction function)
{
    const char* name = nullptr;
    if (function != nullptr) static_cast<void>(driver.status("cuFuncGetName", driver.cuFuncGetName, &name, function));
    return within(kernel_text(name != nullptr ? name : "(no name)"),
                  {ErrorCode::not_recordable,
                   "it runs in another context than the device's primary one; capture with the primary context"});
}

} // namespace

Result<AttributeValues> KernelReader::fresh_attributes(const CUDA_KERNEL_NODE_PARAMS& native)
{
    const Driver& driver = *m_core.driver;
    if (m_scratch.get() == nullptr) {
        auto made = driver.call("cuGraphCreate", driver.cuGraphCreate, m_scratch.out(), 0U);
        if (!made) return std::unexpected(made.error());
    }
    CUgraphNode node = nullptr;
    const CUresult added = driver.status("cuGraphAddKernelNode", driver.cuGraphAddKernelNode, &node, m_scratch.get(),
                                         nullptr, std::size_t{0}, &native);
    if (added == CUDA_ERROR_INVALID_VALUE) return AttributeValues{}; // the kernel needs attributes
    if (added != CUDA_SUCCESS) return std::unexpected(driver.error("cuGraphAddKernelNode", added));
    m_attributes.ask_again();
    return m_attributes.read(node);
}

Result<const KernelReader::KernelDescription*> KernelReader::known(const CUDA_KERNEL_NODE_PARAMS& native)
{
    if (const auto found = m_known.find(native.func); found != m_known.end()) return &found->second;
    const Driver& driver = *m_core.driver;
    KernelDescription known;
    const char* name = nullptr;
    if (auto named = driver.call("cuFuncGetName", driver.cuFuncGetName, &name, native.func); !named)
        return std::unexpected(named.error());
    known.name = name;
    auto module = m_core.modules.module_of(m_core, native.func);
    if (!module) return within(kernel_text(known.name), module.error());
    known.module = *module;
    auto sizes = param_sizes(driver, native.func);
    if (!sizes) return within(kernel_text(known.name), sizes.error());
    known.sizes = std::move(*sizes);
    auto attributes = read_function_attributes(driver, native.func, known.free_shared);
    if (!attributes) return within(kernel_text(known.name), attributes.error());
    known.attributes = std::move(*attributes);
    auto fresh = fresh_attributes(native);
    if (!fresh) return within(kernel_text(known.name), fresh.error());
    known.fresh = *fresh;
    return &m_known.emplace(native.func, std::move(known)).first->second;
}

Result<RawKernel> KernelReader::read(CUgraphNode node)
{
    const Driver& driver = *m_core.driver;
    CUDA_KERNEL_NODE_PARAMS native{};
    auto got = driver.call("cuGraphKernelNodeGetParams", driver.cuGraphKernelNodeGetParams, node, &native);
    if (!got) return std::unexpected(got.error());
    if (native.ctx != nullptr && native.ctx != m_core.context) return of_another_context(driver, native.func);
    if (native.func == nullptr) {
        got = driver.call("cuKernelGetFunction", driver.cuKernelGetFunction, &native.func, native.kern);
        if (!got) return std::unexpected(got.error());
    }
    const auto function = known(native);
    if (!function) return std::unexpected(function.error());
    const auto in_kernel = [&](Error error) { return within(kernel_text((*function)->name), std::move(error)); };
    RawKernel kernel;
    kernel.module = (*function)->module;
    kernel.kernel = (*function)->name;
    kernel.grid = {native.gridDimX, native.gridDimY, native.gridDimZ};
    kernel.block = {native.blockDimX, native.blockDimY, native.blockDimZ};
    kernel.shared_bytes = native.sharedMemBytes;
    kernel.function_attributes = (*function)->attributes;
    limit_to_launch(kernel.function_attributes, (*function)->free_shared, native.sharedMemBytes);
    if (auto read = read_params(native, (*function)->sizes, kernel); !read) return in_kernel(read.error());
    const auto held = m_attributes.read(node);
    if (!held) return in_kernel(held.error());
    auto changed = changed_attributes(*held, (*function)->fresh);
    if (!changed) return in_kernel(changed.error());
    kernel.attributes = std::move(*changed);
    for (const RawAttribute& attribute : kernel.attributes) {
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
            return in_kernel({ErrorCode::not_recordable,
                              "device code updates this node through a handle, which a new process cannot have; "
                              "launch it without that attribute"});
    }
    return kernel;
}

} // namespace warmgraph::backends::cuda
