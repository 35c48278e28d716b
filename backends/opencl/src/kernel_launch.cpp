#include "kernel_launch.hpp"

#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends::opencl {
namespace {

constexpr const char* k_kind_names[] = {"a value", "memory", "local memory"};

const char* name_of(ParamKind kind) { return k_kind_names[static_cast<std::size_t>(kind)]; }

std::unexpected<Error> wrong(const RawKernel& work, const std::string& what)
{
    return fail(ErrorCode::invalid_argument, "kernel '{}': {}", work.kernel, what);
}

Result<void> check_geometry(const RawKernel& work, const KernelInfo& info, const LaunchLimits& limits)
{
    std::uint64_t items = 1;
    for (std::size_t i = 0; i < 3; ++i) {
        if (work.grid[i] == 0 || work.block[i] == 0)
            return wrong(work, "grid and block must be at least 1 in every dimension");
        if (work.block[i] > limits.max_items[i]) {
            return wrong(work, fmt::format("block dimension {} is {}, at most {} on this device", i, work.block[i],
                                           limits.max_items[i]));
        }
        items *= work.block[i];
    }
    const std::uint64_t most = std::min(limits.max_block, info.max_block);
    if (items > most)
        return wrong(work, fmt::format("a block of {} work-items, at most {} on this device", items, most));
    const auto& required = info.required_block;
    if (required[0] != 0 && !std::ranges::equal(required, work.block)) {
        return wrong(work, fmt::format("block {}x{}x{}, but its reqd_work_group_size is {}x{}x{}", work.block[0],
                                       work.block[1], work.block[2], required[0], required[1], required[2]));
    }
    return {};
}

Result<void> check_param(const RawKernel& work, std::uint32_t index, ParamKind expected, OpenclModule& module,
                         const Memory& memory)
{
    const RawParam& param = work.params[index];
    if (param.kind != expected) {
        return wrong(work, fmt::format("parameter {} is {}, the kernel takes {}", index, name_of(param.kind),
                                       name_of(expected)));
    }
    Result<void> checked;
    if (param.kind == ParamKind::memory) {
        checked = memory.check_argument(param.address);
    } else if (param.kind == ParamKind::value) {
        if (param.value.empty()) return wrong(work, fmt::format("parameter {} is a value of 0 bytes", index));
        checked = module.check_value(work.kernel, index, param.value);
        if (!checked)
            return wrong(work, fmt::format("parameter {} is a value of {} bytes: {}", index, param.value.size(),
                                           checked.error().message));
    } else if (param.local_size == 0) {
        return wrong(work, fmt::format("parameter {} is 0 bytes of local memory", index));
    }
    if (!checked) return wrong(work, fmt::format("parameter {}: {}", index, checked.error().message));
    return {};
}

} // namespace

Geometry geometry_of(const RawKernel& work) noexcept
{
    Geometry geometry;
    for (cl_uint i = 0; i < 3; ++i) {
        geometry.global[i] = std::size_t{work.grid[i]} * work.block[i];
        geometry.local[i] = work.block[i];
        if (geometry.global[i] > 1) geometry.dimensions = i + 1;
    }
    return geometry;
}

Result<OpenclModule*> module_of(const RawKernel& work)
{
    auto* const module = dynamic_cast<OpenclModule*>(work.module);
    if (module == nullptr) {
        return wrong(work, work.module == nullptr ? "the module is null; compile or load one first"
                                                  : "the kernel's module belongs to another backend");
    }
    return module;
}

Result<void> check_launch(const RawKernel& work, const LaunchLimits& limits, const Memory& memory)
{
    if (auto plain = check_plain(work); !plain) return plain;
    const auto module = module_of(work);
    if (!module) return std::unexpected(module.error());
    const auto info = (*module)->info(work.kernel);
    if (!info)
        return fail(info.error().code == ErrorCode::not_found ? ErrorCode::invalid_argument : info.error().code, "{}",
                    info.error().message);
    const auto& kinds = (*info)->params;
    if (kinds.size() != work.params.size()) {
        return wrong(work, fmt::format("{} parameters given, the kernel takes {}", work.params.size(), kinds.size()));
    }
    if (auto checked = check_geometry(work, **info, limits); !checked) return checked;
    std::uint64_t local = (*info)->own_local_memory;
    for (std::uint32_t index = 0; index < kinds.size(); ++index) {
        if (auto checked = check_param(work, index, kinds[index], **module, memory); !checked) return checked;
        if (kinds[index] != ParamKind::local) continue;
        const std::uint64_t size = work.params[index].local_size;
        if (size > limits.local_memory || local + size > limits.local_memory) {
            return wrong(work, fmt::format("{} bytes of local memory, at most {} on this device", local + size,
                                           limits.local_memory));
        }
        local += size;
    }
    return {};
}

Result<void> check_copy(const RawCopy& work, const Memory& memory)
{
    if (auto plain = check_plain(work); !plain) return plain;
    if (auto checked = memory.check("copy source", work.source, work.size); !checked) return checked;
    if (auto checked = memory.check("copy destination", work.destination, work.size); !checked) return checked;
    return check_form(work);
}

Result<void> check_fill(const RawFill& work, const Memory& memory)
{
    if (auto plain = check_plain(work); !plain) return plain;
    if (auto checked = check_form(work); !checked) return checked;
    return memory.check("fill destination", work.destination, work.size);
}

Result<void> set_param(cl_kernel kernel, cl_uint index, const RawParam& param, Memory& memory)
{
    switch (param.kind) {
    case ParamKind::value:
        return call("clSetKernelArg", driver().clSetKernelArg, kernel, index, param.value.size(),
                    static_cast<const void*>(param.value.data()));
    case ParamKind::local:
        return call("clSetKernelArg", driver().clSetKernelArg, kernel, index, std::size_t{param.local_size}, nullptr);
    case ParamKind::memory: {
        const auto object = memory.argument(param.address);
        if (!object) return std::unexpected(object.error());
        return call("clSetKernelArg", driver().clSetKernelArg, kernel, index, sizeof(cl_mem),
                    static_cast<const void*>(&*object));
    }
    }
    return fail(ErrorCode::invalid_argument, "unknown kind of parameter {}", static_cast<int>(param.kind));
}

} // namespace warmgraph::backends::opencl
