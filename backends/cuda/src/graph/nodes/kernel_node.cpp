#include "graph/nodes/kernel_node.hpp"

#include <algorithm>
#include <mutex>

#include "device/enqueue.hpp"
#include "graph/launch_attributes.hpp"
#include "graph/nodes/nodes.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::backends::cuda {
namespace {

bool may_be_set(std::uint32_t id) noexcept
{
    constexpr std::array k_settable{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
                                    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE};
    return std::ranges::find(k_settable, static_cast<CUfunction_attribute>(id)) != k_settable.end();
}

// Like check_update() of work_checks, but compares with the kept data of the node.
Result<void> check_change(const InstantiatedKernel& before, const RawKernel& after)
{
    const auto differs = [&](std::string_view what, ErrorCode code = ErrorCode::invalid_argument) {
        return fail(code, "update of kernel '{}' changes its {}; instantiate another graph for that",
                    readable_kernel_name(before.function->name), what);
    };
    if (before.function->module != after.module || before.function->name != after.kernel) return differs("kernel");
    if (before.grid != after.grid || before.block != after.block || before.shared_bytes != shared_bytes_of(after))
        return differs("dimensions");
    if (after.packed != (before.packed_size != 0)) return differs("parameters' form");
    if (before.attributes != after.attributes) return differs("launch attributes", ErrorCode::unsupported);
    if (after.packed && after.params.size() == 1 && after.params[0].value.size() != before.packed_size)
        return differs("parameter buffer's size");
    return check_params(after, *before.function->info);
}

} // namespace

Result<KernelFunction*> KernelFunctions::find(const RawKernel& kernel)
{
    const auto known = m_index.find({kernel.module, kernel.kernel});
    KernelFunction* found = known == m_index.end() ? nullptr : known->second;
    if (found == nullptr) {
        const auto info = info_of(kernel);
        if (!info) return std::unexpected(info.error());
        found = &m_functions.emplace_back(kernel.module, kernel.kernel, *info);
        m_index.emplace(Key{found->module, found->name}, found);
    }
    if (auto checked = check_params(kernel, *found->info); !checked) return std::unexpected(checked.error());
    return found;
}

Result<void> apply_function_attributes(const Driver& driver, CUfunction function,
                                       std::span<const FunctionAttribute> attributes)
{
    static std::mutex mutex; // held while reading and raising the limit
    const std::scoped_lock lock(mutex);
    for (const FunctionAttribute& attribute : attributes) {
        if (!may_be_set(attribute.id))
            return fail(ErrorCode::unsupported, "function attribute {} cannot be set", attribute.id);
        const auto id = static_cast<CUfunction_attribute>(attribute.id);
        int now = 0;
        const auto get = [&] {
            return driver.call("cuFuncGetAttribute", driver.cuFuncGetAttribute, &now, id, function);
        };
        const auto is_there = [&] {
            const bool is_limit = id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            return now == attribute.value || (is_limit && now > attribute.value);
        };
        if (auto got = get(); !got) return got;
        if (is_there()) continue;
        auto set = driver.call("cuFuncSetAttribute", driver.cuFuncSetAttribute, function, id, attribute.value);
        if (!set)
            return within(fmt::format("function attribute {} from {} to {}", attribute.id, now, attribute.value),
                          set.error());
        if (auto got = get(); !got) return got;
        if (!is_there())
            return fail(ErrorCode::driver_failed, "function attribute {} was set to {} and reads back as {}",
                        attribute.id, attribute.value, now);
    }
    return {};
}

InstantiatedKernel kept(const RawKernel& kernel, const KernelFunction* function)
{
    return {function,
            kernel.grid,
            kernel.block,
            shared_bytes_of(kernel),
            kernel.packed ? kernel.params[0].value.size() : 0,
            kernel.attributes};
}

Result<void> add(AddCall& call, const RawKernel& kernel)
{
    const Driver& driver = *call.core.driver;
    const auto function = call.functions.find(kernel);
    if (!function) return std::unexpected(function.error());
    if ((*function)->applied != kernel.function_attributes) {
        auto applied = apply_function_attributes(driver, (*function)->info->function, kernel.function_attributes);
        if (!applied) return within(fmt::format("kernel '{}'", readable_kernel_name(kernel.kernel)), applied.error());
        (*function)->applied = kernel.function_attributes;
    }
    call.kernel = *function;
    const CUDA_KERNEL_NODE_PARAMS* const native = &call.buffers.kernels.fill((*function)->info->function, kernel);
    auto added = call("cuGraphAddKernelNode", driver.cuGraphAddKernelNode, native);
    if (added) added = set_attributes(driver, call.node, kernel.attributes);
    if (!added) return within(fmt::format("kernel '{}'", readable_kernel_name(kernel.kernel)), added.error());
    return {};
}

Result<void> change(const ChangeCall& call, InstantiatedKernel& before, const RawKernel& after)
{
    if (auto checked = check_change(before, after); !checked) return checked;
    const CUDA_KERNEL_NODE_PARAMS& native = call.buffers.kernels.fill(before.function->info->function, after);
    return call("cuGraphExecKernelNodeSetParams", call.core.driver->cuGraphExecKernelNodeSetParams, &native);
}

} // namespace warmgraph::backends::cuda
