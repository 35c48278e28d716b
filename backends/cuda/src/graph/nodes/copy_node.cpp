#include "graph/nodes/copy_node.hpp"

#include <algorithm>

namespace warmgraph::backends::cuda {
namespace {

/// One side of a CUDA_MEMCPY3D.
struct Side {
    const char* name;
    CUmemorytype type;
    const void* host;
    CUdeviceptr device;
    std::size_t x, y, z, pitch, height;
};

struct CopyEnd {
    Address address;
    MemorySpace space = MemorySpace::device;
    Pitch pitch{};
};

std::unexpected<Error> not_page_locked(const Side& side, std::uint64_t address)
{
    return fail(ErrorCode::not_recordable,
                "the copy's {} {:#x} is pageable host memory, which a graph reads at each launch and which another "
                "process does not have; allocate it with Device::allocate_host or cudaMallocHost",
                side.name, address);
}

/// The memory space of a side. Asks the driver only if the node does not say.
Result<MemorySpace> space_of(const Core& core, const Side& side, std::uint64_t address,
                             std::span<const RawAllocation> allocations)
{
    if (side.type == CU_MEMORYTYPE_DEVICE) return MemorySpace::device;
    const auto holds = [address](const RawAllocation& made) {
        const std::uint64_t start = made.memory.address.flat();
        return address >= start && address - start < made.memory.size;
    };
    if (std::ranges::any_of(allocations, holds)) return MemorySpace::device;
    if (side.type != CU_MEMORYTYPE_HOST && side.type != CU_MEMORYTYPE_UNIFIED)
        return fail(ErrorCode::not_recordable,
                    "the copy's {} is a CUDA array, which a new process cannot have; copy linear memory instead",
                    side.name);
    unsigned int type = 0;
    if (core.driver->status("cuPointerGetAttribute", core.driver->cuPointerGetAttribute, &type,
                            CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS)
        return not_page_locked(side, address);
    if (side.type == CU_MEMORYTYPE_HOST) return MemorySpace::host;
    return type == CU_MEMORYTYPE_HOST ? MemorySpace::host : MemorySpace::device;
}

Result<CopyEnd> place_of(const Core& core, const Side& side, const CUDA_MEMCPY3D& native,
                         std::span<const RawAllocation> allocations)
{
    const std::uint64_t start =
        side.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(side.host) : side.device;
    const std::uint64_t row = side.pitch != 0 ? side.pitch : native.WidthInBytes;
    const std::uint64_t slice = row * (side.height != 0 ? side.height : native.Height);
    const std::uint64_t address = start + side.z * slice + side.y * row + side.x;
    const auto space = space_of(core, side, address, allocations);
    if (!space) return std::unexpected(space.error());
    CopyEnd place{Address::from_flat(address), *space, {}};
    if (native.Height > 1 || native.Depth > 1) place.pitch.row = row;
    if (native.Depth > 1) place.pitch.slice = slice;
    return place;
}

} // namespace

CUDA_MEMCPY3D to_native(const RawCopy& copy) noexcept
{
    CUDA_MEMCPY3D native{};
    native.WidthInBytes = copy.size;
    native.Height = copy.rows;
    native.Depth = copy.slices;
    const auto height = [&](const Pitch& pitch) {
        return copy.slices > 1 && pitch.row != 0 ? pitch.slice / pitch.row : 0;
    };
    native.srcPitch = copy.source_pitch.row;
    native.srcHeight = height(copy.source_pitch);
    native.dstPitch = copy.destination_pitch.row;
    native.dstHeight = height(copy.destination_pitch);
    if (copy.source_space == MemorySpace::host) {
        native.srcMemoryType = CU_MEMORYTYPE_HOST;
        native.srcHost = copy.source.pointer<const void>();
    } else {
        native.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        native.srcDevice = copy.source.flat();
    }
    if (copy.destination_space == MemorySpace::host) {
        native.dstMemoryType = CU_MEMORYTYPE_HOST;
        native.dstHost = copy.destination.pointer();
    } else {
        native.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        native.dstDevice = copy.destination.flat();
    }
    return native;
}

Result<RawWork> read_copy(const Core& core, CUgraphNode node, std::span<const RawAllocation> allocations)
{
    CUDA_MEMCPY3D native{};
    auto got = core.driver->call("cuGraphMemcpyNodeGetParams", core.driver->cuGraphMemcpyNodeGetParams, node, &native);
    if (!got) return std::unexpected(got.error());
    const auto source = place_of(core,
                                 {"source", native.srcMemoryType, native.srcHost, native.srcDevice, native.srcXInBytes,
                                  native.srcY, native.srcZ, native.srcPitch, native.srcHeight},
                                 native, allocations);
    if (!source) return std::unexpected(source.error());
    const auto destination = place_of(core,
                                      {"destination", native.dstMemoryType, native.dstHost, native.dstDevice,
                                       native.dstXInBytes, native.dstY, native.dstZ, native.dstPitch, native.dstHeight},
                                      native, allocations);
    if (!destination) return std::unexpected(destination.error());
    if (native.WidthInBytes == 0 || native.Height == 0 || native.Depth == 0) return RawEmpty{};
    return RawCopy{source->address, destination->address, native.WidthInBytes, native.Height,     native.Depth,
                   source->pitch,   destination->pitch,   source->space,       destination->space};
}

Result<void> add(AddCall& call, const RawCopy& copy)
{
    const CUDA_MEMCPY3D native = to_native(copy);
    return call("cuGraphAddMemcpyNode", call.core.driver->cuGraphAddMemcpyNode, &native, call.core.context);
}

Result<void> change(const ChangeCall& call, RawCopy& before, const RawCopy& after)
{
    if (before == after) return {};
    // The driver refuses to change copies of several rows or slices (cuGraphExecMemcpyNodeSetParams); this error has
    // the cure.
    if (before.rows > 1 || before.slices > 1 || after.rows > 1 || after.slices > 1)
        return fail(ErrorCode::unsupported,
                    "the driver cannot change a copy of several rows; instantiate another graph");
    if (before.source_space != after.source_space || before.destination_space != after.destination_space)
        return fail(ErrorCode::invalid_argument, "the copy changes between host and device; instantiate another graph");
    const CUDA_MEMCPY3D native = to_native(after);
    auto set =
        changed_or_unsupported(call("cuGraphExecMemcpyNodeSetParams", call.core.driver->cuGraphExecMemcpyNodeSetParams,
                                    &native, call.core.context));
    if (set) before = after;
    return set;
}

} // namespace warmgraph::backends::cuda
