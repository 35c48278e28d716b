// bare_graph.hpp: what is done before the clock runs.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "bare_graph.hpp"

namespace warmgraph::bench {
namespace {

using cachefmt::MemorySpace;

void* pointer_to(std::uint64_t address)
{
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); // NOLINT: so the driver calls it
}

/// What the slot stands for, in its width.
void patch(const cachefmt::Slot& slot, const std::vector<std::uint64_t>& regions,
           const std::vector<std::uint64_t>& scalars, std::byte* bytes)
{
    const bool is_region = slot.kind == cachefmt::SlotKind::region;
    const std::uint64_t value =
        (is_region ? regions : scalars).at(slot.target) + static_cast<std::uint64_t>(slot.addend);
    std::memcpy(bytes + slot.offset, &value, is_region ? sizeof value : slot.width);
}

std::uint64_t address_of(const cachefmt::Slot& slot, const std::vector<std::uint64_t>& regions)
{
    return regions.at(slot.target) + static_cast<std::uint64_t>(slot.addend);
}

CUDA_MEMCPY3D to_native(const cachefmt::CopyNode& copy, const std::vector<std::uint64_t>& regions)
{
    CUDA_MEMCPY3D native{};
    native.WidthInBytes = copy.size;
    native.Height = copy.rows;
    native.Depth = copy.slices;
    const auto height = [&](const cachefmt::Pitch& pitch) {
        return copy.slices > 1 && pitch.row != 0 ? pitch.slice / pitch.row : 0;
    };
    native.srcPitch = copy.source_pitch.row;
    native.srcHeight = height(copy.source_pitch);
    native.dstPitch = copy.destination_pitch.row;
    native.dstHeight = height(copy.destination_pitch);
    const std::uint64_t source = address_of(copy.source, regions), destination = address_of(copy.destination, regions);
    native.srcMemoryType = copy.source_space == MemorySpace::host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    native.dstMemoryType = copy.destination_space == MemorySpace::host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (native.srcMemoryType == CU_MEMORYTYPE_HOST)
        native.srcHost = pointer_to(source);
    else
        native.srcDevice = source;
    if (native.dstMemoryType == CU_MEMORYTYPE_HOST)
        native.dstHost = pointer_to(destination);
    else
        native.dstDevice = destination;
    return native;
}

/// Memset nodes have elements of 1, 2 and 4 bytes; a longer pattern may repeat a shorter one.
std::size_t element_size(const Bytes& pattern)
{
    std::size_t width = pattern.size();
    const auto repeats = [&] { return std::memcmp(pattern.data(), pattern.data() + width / 2, width / 2) == 0; };
    if (width > 4)
        while (width > 1 && width % 2 == 0 && repeats()) width /= 2;
    if (width != 1 && width != 2 && width != 4)
        throw std::runtime_error(
            fmt::format("a fill's pattern has {} bytes, which no memset node has", pattern.size()));
    return width;
}

CUDA_MEMSET_NODE_PARAMS to_native(const cachefmt::FillNode& fill, const std::vector<std::uint64_t>& regions)
{
    const std::size_t width = element_size(fill.pattern);
    CUDA_MEMSET_NODE_PARAMS native{};
    native.dst = address_of(fill.destination, regions);
    native.elementSize = static_cast<unsigned>(width);
    std::memcpy(&native.value, fill.pattern.data(), width);
    native.width = fill.size / width;
    native.height = fill.rows;
    native.pitch = fill.rows > 1 ? fill.pitch : 0;
    return native;
}

} // namespace

BareGraph::BareGraph(const BareContext& context, const StoredEntry& stored, const std::vector<std::uint64_t>& regions)
    : m_context(context), m_driver(context.driver)
{
    const cachefmt::Graph& graph = stored.entry.graph;
    Addresses addresses{regions, {}};
    for (const ScalarUse& scalar : scalars_of(stored.entry)) addresses.scalars.push_back(scalar.bits);
    for (const auto& image : graph.images) plan_image(image, stored, addresses);
    m_nodes.resize(graph.nodes.size());
    m_native.resize(graph.nodes.size());
    m_kernels.reserve(graph.nodes.size()); // pointers into them stay
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (const auto* const kernel = std::get_if<cachefmt::KernelNode>(&graph.nodes[i])) {
            plan_kernel(i, *kernel, addresses);
        } else if (const auto* const copy = std::get_if<cachefmt::CopyNode>(&graph.nodes[i])) {
            m_nodes[i] = {Kind::copy, m_copies.size()};
            m_copies.push_back(to_native(*copy, regions));
        } else if (const auto* const fill = std::get_if<cachefmt::FillNode>(&graph.nodes[i])) {
            m_nodes[i] = {Kind::fill, m_fills.size()};
            m_fills.push_back(to_native(*fill, regions));
        }
    }
    // The limit only grows: at once as high as any node needs it.
    for (Setting& setting : m_settings)
        if (setting.id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
            setting.value = m_functions[setting.function].settings.at(setting.id);
    plan_edges(graph);
}

void BareGraph::plan_image(const cachefmt::ImageRef& image, const StoredEntry& stored, const Addresses& addresses)
{
    Image& planned = m_images.emplace_back();
    planned.bytes = stored.images.at(image.digest);
    planned.bytes.push_back(std::byte{0});
    for (const auto& variable : image.variables) {
        auto& copy = planned.variables.emplace_back(Variable{variable.name, variable.contents});
        for (const auto& slot : variable.slots) patch(slot, addresses.regions, addresses.scalars, copy.contents.data());
    }
}

std::size_t BareGraph::function_of(std::size_t image, const std::string& name)
{
    const auto found = std::ranges::find_if(
        m_functions, [&](const Function& function) { return function.image == image && function.name == name; });
    if (found != m_functions.end()) return static_cast<std::size_t>(found - m_functions.begin());
    m_functions.push_back({image, name, nullptr, {}, false});
    return m_functions.size() - 1;
}

void BareGraph::plan_settings(Kernel& planned, const std::vector<cachefmt::FunctionAttribute>& wanted)
{
    Function& function = m_functions[planned.function];
    for (const auto& attribute : wanted) {
        const auto id = static_cast<CUfunction_attribute>(attribute.id);
        const auto [known, is_new] = function.settings.try_emplace(id, attribute.value);
        const bool is_limit = id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        if (is_limit) {
            known->second = std::max(known->second, attribute.value);
            if (is_new) m_settings.push_back({planned.function, id, attribute.value});
        } else if (!function.is_used) {
            m_settings.push_back({planned.function, id, attribute.value});
        } else if (is_new || known->second != attribute.value) {
            known->second = attribute.value;
            planned.before.push_back({planned.function, id, attribute.value});
        }
    }
    function.is_used = true;
}

void BareGraph::plan_kernel(std::size_t node, const cachefmt::KernelNode& kernel, const Addresses& addresses)
{
    m_nodes[node] = {Kind::kernel, m_kernels.size()};
    Kernel& planned = m_kernels.emplace_back();
    planned.function = function_of(kernel.image, kernel.kernel);
    plan_settings(planned, kernel.function_attributes);
    auto& params = planned.params;
    params.gridDimX = kernel.grid[0], params.gridDimY = kernel.grid[1], params.gridDimZ = kernel.grid[2];
    params.blockDimX = kernel.block[0], params.blockDimY = kernel.block[1], params.blockDimZ = kernel.block[2];
    std::uint64_t shared = kernel.shared_bytes;
    for (const auto& param : kernel.params) {
        if (param.kind == cachefmt::ParamKind::local) {
            shared += param.local_size;
            continue;
        }
        Bytes& value = planned.values.emplace_back(param.value);
        if (param.kind == cachefmt::ParamKind::memory) value.resize(sizeof(CUdeviceptr));
        for (const auto& slot : param.slots) patch(slot, addresses.regions, addresses.scalars, value.data());
    }
    params.sharedMemBytes = static_cast<unsigned>(shared);
    for (Bytes& value : planned.values) planned.pointers.push_back(value.data());
    if (kernel.packed) {
        planned.packed_size = planned.values.front().size();
        planned.extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, planned.pointers.front(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &planned.packed_size, CU_LAUNCH_PARAM_END};
        params.extra = planned.extra.data();
    } else if (!planned.pointers.empty()) {
        params.kernelParams = planned.pointers.data();
    }
    for (const auto& attribute : kernel.attributes) {
        Attribute native{node, static_cast<CUlaunchAttributeID>(attribute.id), {}, attribute.value.size()};
        if (native.size > sizeof native.value) throw std::runtime_error("a launch attribute is too large");
        Bytes value = attribute.value;
        for (const auto& slot : attribute.slots) patch(slot, addresses.regions, addresses.scalars, value.data());
        std::memcpy(&native.value, value.data(), native.size);
        m_attributes.push_back(native);
        if (native.id == CU_LAUNCH_ATTRIBUTE_PRIORITY) m_flags = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    }
}

/// One call with mixed edge data gives all edges the first one's: a call for each.
void BareGraph::plan_edges(const cachefmt::Graph& graph)
{
    for (const auto& edge : graph.edges) {
        auto group = std::ranges::find(m_edges, edge.data, &EdgeGroup::data);
        if (group == m_edges.end()) group = m_edges.insert(group, {edge.data, {}, {}, {}, {}});
        group->edges.emplace_back(edge.from, edge.to);
    }
    for (EdgeGroup& group : m_edges) {
        CUgraphEdgeData data{};
        data.from_port = group.data.from_port;
        data.to_port = group.data.to_port;
        data.type = group.data.type;
        group.native.assign(group.edges.size(), data);
        group.from.resize(group.edges.size());
        group.to.resize(group.edges.size());
    }
}

} // namespace warmgraph::bench
