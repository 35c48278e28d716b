// The checks of enqueue.hpp.
#include <algorithm>

#include "code/kernel_params.hpp"
#include "device/enqueue.hpp"
#include "graph/launch_attributes.hpp"
#include "warmgraph/backends/work_checks.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::backends::cuda {
namespace {

constexpr std::uint32_t k_max_grid_yz = 65535; ///< limit of every compute capability, as is k_max_block_z
constexpr std::uint32_t k_max_block_z = 64;

template <class... Args>
std::unexpected<Error> wrong(const RawKernel& work, fmt::format_string<Args...> text, Args&&... args)
{
    return fail(ErrorCode::invalid_argument, "kernel '{}': {}", readable_kernel_name(work.kernel),
                fmt::format(text, std::forward<Args>(args)...));
}

Result<void> check_geometry(const RawKernel& work, const KernelInfo& info)
{
    std::uint64_t threads = 1;
    for (std::size_t i = 0; i < 3; ++i) {
        if (work.grid[i] == 0 || work.block[i] == 0)
            return wrong(work, "grid and block must be at least 1 in every dimension");
        if (i > 0 && work.grid[i] > k_max_grid_yz)
            return wrong(work, "grid dimension {} is {}, at most {}", i, work.grid[i], k_max_grid_yz);
        threads *= work.block[i];
    }
    if (threads > info.max_block)
        return wrong(work, "a block of {} threads, at most {} for this kernel on this device", threads, info.max_block);
    if (work.block[2] > k_max_block_z)
        return wrong(work, "block dimension 2 is {}, at most {}", work.block[2], k_max_block_z);
    return {};
}

/// REQUIRES: check_params() accepted the parameters.
Result<void> check_memory(const RawKernel& work, const Memory& memory, Touch touch)
{
    std::size_t index = 0;
    for (const RawParam& param : work.params) {
        if (param.kind == ParamKind::local) continue;
        if (param.kind == ParamKind::memory && !param.address.is_null()) // null means a tensor without elements
            if (auto checked = memory.check("kernel argument", param.address, 1, touch); !checked)
                return wrong(work, "parameter {}: {}", index, checked.error().message);
        ++index;
    }
    return {};
}

Result<void> check_shared(const RawKernel& work, const KernelInfo& info, std::uint64_t most)
{
    std::uint64_t total = std::uint64_t{info.static_shared} + work.shared_bytes;
    for (const RawParam& param : work.params) {
        if (param.kind != ParamKind::local) continue;
        total = param.local_size > most ? most + 1 : total + param.local_size; // avoids overflow
    }
    if (total > most)
        return wrong(work, "{} bytes of local memory (shared, dynamic and static), at most {} on this device", total,
                     most);
    return {};
}

Result<void> check_attributes(const RawKernel& work)
{
    for (const RawAttribute& attribute : work.attributes) {
        if (attribute.value.empty() || attribute.value.size() > sizeof(CUlaunchAttributeValue))
            return wrong(work, "launch attribute {} has {} bytes, expected 1 to {}", attribute.id,
                         attribute.value.size(), sizeof(CUlaunchAttributeValue));
        const AttributeInfo* const known = attribute_info(attribute.id);
        if (known != nullptr && known->size != attribute.value.size())
            return wrong(work, "launch attribute '{}' has {} bytes, expected {}", known->name, attribute.value.size(),
                         known->size);
    }
    return {};
}

/// Bytes from the first to the last byte of a box. nullopt if its pitches are too small or too large.
std::optional<std::uint64_t> extent_of(const RawCopy& work, const Pitch& pitch)
{
    if (work.rows == 0 || work.slices == 0) return std::nullopt;
    if (work.rows > 1 && pitch.row < work.size) return std::nullopt;
    if (work.slices > 1 && (pitch.row == 0 || pitch.slice % pitch.row != 0 || pitch.slice / pitch.row < work.rows))
        return std::nullopt;
    std::uint64_t extent = 0, rows = 0, slices = 0;
    if (__builtin_mul_overflow(work.rows - 1, pitch.row, &rows) ||
        __builtin_mul_overflow(work.slices - 1, pitch.slice, &slices) ||
        __builtin_add_overflow(rows, slices, &extent) || __builtin_add_overflow(extent, work.size, &extent))
        return std::nullopt;
    return extent;
}

Result<CudaModule*> module_of(const RawKernel& work)
{
    auto* const module = dynamic_cast<CudaModule*>(work.module);
    if (module == nullptr)
        return wrong(work, "{}",
                     work.module == nullptr ? "the module is null; compile or load one first"
                                            : "the kernel's module belongs to another backend");
    return module;
}

} // namespace

Result<const KernelInfo*> info_of(const RawKernel& work)
{
    const auto module = module_of(work);
    if (!module) return std::unexpected(module.error());
    auto info = (*module)->info(work.kernel);
    if (!info && info.error().code == ErrorCode::not_found) info.error().code = ErrorCode::invalid_argument;
    return info;
}

Result<const KernelInfo*> check_launch(const RawKernel& work, const Core& core, const Memory& memory, Touch touch)
{
    const auto info = info_of(work);
    if (!info) return info;
    if (auto checked = check_geometry(work, **info); !checked) return std::unexpected(checked.error());
    if (auto checked = check_params(work, **info); !checked) return std::unexpected(checked.error());
    if (auto checked = check_memory(work, memory, touch); !checked) return std::unexpected(checked.error());
    if (auto checked = check_shared(work, **info, core.limits.local_memory); !checked)
        return std::unexpected(checked.error());
    if (auto checked = check_attributes(work); !checked) return std::unexpected(checked.error());
    return *info;
}

Result<void> check_copy(const RawCopy& work, const Memory& memory, Touch touch)
{
    const auto source = extent_of(work, work.source_pitch);
    const auto destination = extent_of(work, work.destination_pitch);
    if (!source || !destination) {
        return fail(ErrorCode::invalid_argument,
                    "copy of {} rows of {} bytes in {} slices: rows and slices must be at least 1, the row pitch at "
                    "least one row, the slice pitch a multiple of the row pitch that holds all rows",
                    work.rows, work.size, work.slices);
    }
    if (auto checked = memory.check("copy source", work.source, *source, touch); !checked) return checked;
    if (auto checked = memory.check("copy destination", work.destination, *destination, touch); !checked)
        return checked;
    return check_form(work);
}

Result<void> check_fill(const RawFill& work, const Memory& memory, Touch touch)
{
    if (auto checked = check_form(work); !checked) return checked;
    std::uint64_t extent = 0;
    const bool is_right = work.rows == 1 || (work.rows > 1 && work.pitch >= work.size &&
                                             work.pitch % std::min<std::size_t>(work.pattern.size(), 4) == 0);
    if (!is_right || __builtin_mul_overflow(work.rows - 1, work.pitch, &extent) ||
        __builtin_add_overflow(extent, work.size, &extent)) {
        return fail(ErrorCode::invalid_argument,
                    "fill of {} rows of {} bytes with a pitch of {}: expected at least 1 row, and a pitch of at least "
                    "one row that is a multiple of the pattern's {} bytes",
                    work.rows, work.size, work.pitch, work.pattern.size());
    }
    return memory.check("fill destination", work.destination, extent, touch);
}

} // namespace warmgraph::backends::cuda
