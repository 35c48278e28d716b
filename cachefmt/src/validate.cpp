// validate(): checks a graph's meaning. The order of the checks is fixed, so the first fault is always the same.
#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_set>

#include "check_count.hpp"
#include "describe.hpp"
#include "footprint.hpp"
#include "nodes/node_format.hpp"
#include "validate_symbol.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::size_t k_name_max = 256;
constexpr std::size_t k_label_max = 4096;
constexpr std::uint32_t k_region_alignment_max = 4096;
constexpr unsigned k_port_max = 2;
constexpr unsigned k_edge_type_max = 1;

using Names = std::unordered_set<std::string_view>;

/// Regions and scalars are bound by name from one list, so names are unique over both. Events and semaphores have their
/// own lists.
Result<void> check_name(const std::string& name, Names& seen)
{
    if (name.empty() || name.size() > k_name_max)
        return fail(ErrorCode::corrupt, "name has {} bytes, expected 1 to {}", name.size(), k_name_max);
    if (!is_plain(name)) return fail(ErrorCode::corrupt, "name '{}' is not printable", printable(name));
    if (!seen.insert(name).second) return fail(ErrorCode::corrupt, "name '{}' is used twice", name);
    return {};
}

Result<void> check_region(const Region& region, const Limits& limits)
{
    if (region.kind > RegionKind::constant)
        return fail(ErrorCode::corrupt, "kind {} is unknown", static_cast<int>(region.kind));
    if (region.space > MemorySpace::host)
        return fail(ErrorCode::corrupt, "memory space {} is unknown", static_cast<int>(region.space));
    if (!std::has_single_bit(region.alignment) || region.alignment > k_region_alignment_max)
        return fail(ErrorCode::corrupt, "alignment {} is not a power of two up to {}", region.alignment,
                    k_region_alignment_max);
    if (region.size > limits.region_bytes)
        return fail(ErrorCode::corrupt, "{} bytes are over the limit of {}", region.size, limits.region_bytes);
    const bool is_elsewhere = region.digest != Digest{};
    if (is_elsewhere && (region.kind != RegionKind::constant || !region.contents.empty() || region.size == 0))
        return fail(ErrorCode::corrupt,
                    "only a constant without contents may store them in another file, but this is {} of {} bytes with "
                    "{} bytes of contents",
                    to_string(region.kind), region.size, region.contents.size());
    if (is_elsewhere && region.size > limits.image_bytes)
        return fail(ErrorCode::corrupt, "{} bytes are stored in another file, over the limit of {}", region.size,
                    limits.image_bytes);
    if (!is_elsewhere && region.kind == RegionKind::constant && region.contents.size() != region.size)
        return fail(ErrorCode::corrupt, "a constant of {} bytes has contents of {}", region.size,
                    region.contents.size());
    if (region.kind != RegionKind::constant && !region.contents.empty())
        return fail(ErrorCode::corrupt, "only a constant has contents, this is {}", to_string(region.kind));
    return {};
}

/// A constant inside an arena must lie in it completely.
Result<void> check_inside(const Graph& graph, const Region& region)
{
    if (!region.inside && region.inside_offset == 0) return {};
    if (!region.inside || region.kind != RegionKind::constant || *region.inside >= graph.regions.size() ||
        graph.regions[*region.inside].kind != RegionKind::arena)
        return fail(ErrorCode::corrupt, "only a constant lies in another region, an arena; this is {}",
                    to_string(region.kind));
    const Region& arena = graph.regions[*region.inside];
    if (region.inside_offset > arena.size || region.size > arena.size - region.inside_offset)
        return fail(ErrorCode::corrupt, "{} bytes at {} lie outside of arena '{}' of {} bytes", region.size,
                    region.inside_offset, printable(arena.name), arena.size);
    return {};
}

Result<void> check_regions(const Graph& graph, const Limits& limits, Names& names)
{
    std::uint64_t arena = 0;
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const Region& region = graph.regions[i];
        auto ok = check_name(region.name, names);
        if (ok) ok = check_region(region, limits);
        if (ok) ok = check_inside(graph, region);
        if (!ok) return within(fmt::format("region {} '{}'", i, printable(region.name)), std::move(ok.error()));
        if (region.kind == RegionKind::arena) arena += region.size; // no overflow: the sum is checked below
        if (arena > limits.arena_bytes)
            return fail(ErrorCode::corrupt, "arenas take {} bytes, over the limit of {}", arena, limits.arena_bytes);
    }
    return {};
}

Result<void> check_scalars(const Graph& graph, Names& names)
{
    for (std::size_t i = 0; i < graph.scalars.size(); ++i) {
        const Scalar& scalar = graph.scalars[i];
        if (auto ok = check_name(scalar.name, names); !ok)
            return within(fmt::format("scalar {}", i), std::move(ok.error()));
        if (static_cast<std::uint8_t>(scalar.type) >= k_dtype_count)
            return fail(ErrorCode::corrupt, "scalar {} '{}': type {} is unknown", i, scalar.name,
                        static_cast<int>(scalar.type));
    }
    return {};
}

/// Checks that each slot has 8 bytes and points into a constant, because the variable is written once and other memory
/// moves.
Result<void> check_variable_slots(const ModuleVariable& variable, const std::vector<Region>& regions)
{
    constexpr std::uint64_t k_address_bytes = 8;
    std::uint64_t end = 0;
    for (const Slot& slot : variable.slots) {
        if (slot.kind != SlotKind::region || slot.width != k_address_bytes || slot.offset < end ||
            slot.offset + k_address_bytes > variable.contents.size())
            return fail(ErrorCode::corrupt, "variable '{}' of {} bytes has a bad slot of {} bytes at {}", variable.name,
                        variable.contents.size(), slot.width, slot.offset);
        end = slot.offset + k_address_bytes;
        if (slot.target >= regions.size() || regions[slot.target].kind != RegionKind::constant || slot.addend < 0 ||
            static_cast<std::uint64_t>(slot.addend) > regions[slot.target].size)
            return fail(ErrorCode::corrupt,
                        "variable '{}' holds an address {} bytes into region {}, expected an address inside a constant",
                        variable.name, slot.addend, slot.target);
    }
    return {};
}

Result<void> check_variables(const ImageRef& image, const std::vector<Region>& regions, const Limits& limits)
{
    const std::vector<ModuleVariable>& all = image.variables;
    if (auto ok = check_count("variables", all.size(), limits.variables_per_image); !ok) return ok;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (auto ok = validate_symbol("variable name", all[i].name, k_symbol_max); !ok) return ok;
        if (i > 0 && !(all[i - 1].name < all[i].name))
            return fail(ErrorCode::corrupt, "variable '{}' is repeated or out of order, variables are sorted by name",
                        all[i].name);
        if (all[i].contents.empty() || all[i].contents.size() > limits.variable_bytes)
            return fail(ErrorCode::corrupt, "variable '{}' has {} bytes, expected 1 to {}", all[i].name,
                        all[i].contents.size(), limits.variable_bytes);
        if (auto ok = check_variable_slots(all[i], regions); !ok) return ok;
    }
    return {};
}

Result<void> check_images(const Graph& graph, const Limits& limits)
{
    for (std::size_t i = 0; i < graph.images.size(); ++i) {
        const ImageRef& image = graph.images[i];
        if (image.digest == Digest{}) return fail(ErrorCode::corrupt, "image {} has no digest", i);
        if (image.size == 0 || image.size > limits.image_bytes)
            return fail(ErrorCode::corrupt, "image {} has {} bytes, expected 1 to {}", i, image.size,
                        limits.image_bytes);
        if (image.label.size() > k_label_max)
            return fail(ErrorCode::corrupt, "image {}: label has {} bytes, over the limit of {}", i, image.label.size(),
                        k_label_max);
        if (auto ok = check_variables(image, graph.regions, limits); !ok)
            return within(fmt::format("image {}", i), std::move(ok.error()));
    }
    return {};
}

/// Checks the names of events or semaphores.
Result<void> check_names(std::string_view what, const std::vector<std::string>& all)
{
    Names names;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (auto ok = check_name(all[i], names); !ok)
            return within(fmt::format("{} {}", what, i), std::move(ok.error()));
    return {};
}

Result<void> check_nodes(const Graph& graph, const Limits& limits)
{
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        if (auto ok = format_of(graph.nodes[i]).validate(graph.nodes[i], graph, limits); !ok)
            return within(node_name(graph.nodes[i], i), std::move(ok.error()));
    return {};
}

/// Checks CUDA's rules for edge data: only kernels have ports, and the programmatic type joins two kernels by a port.
Result<void> check_edge_data(const Edge& edge, const Graph& graph)
{
    const EdgeData& data = edge.data;
    if (data.from_port > k_port_max || data.to_port > k_port_max)
        return fail(ErrorCode::corrupt, "ports {} and {}, expected 0 to {}", data.from_port, data.to_port, k_port_max);
    if (data.type > k_edge_type_max)
        return fail(ErrorCode::corrupt, "type {} is unknown, expected 0 to {}", data.type, k_edge_type_max);
    const auto is_kernel = [&](std::uint32_t node) { return std::holds_alternative<KernelNode>(graph.nodes[node]); };
    if ((data.from_port != 0 || data.type != 0) && !is_kernel(edge.from))
        return fail(ErrorCode::corrupt, "port {} and type {} start at a kernel, this is a {} node", data.from_port,
                    data.type, node_kind(graph.nodes[edge.from]));
    if ((data.to_port != 0 || data.type != 0) && !is_kernel(edge.to))
        return fail(ErrorCode::corrupt, "port {} and type {} end at a kernel, this is a {} node", data.to_port,
                    data.type, node_kind(graph.nodes[edge.to]));
    if (data.type != 0 && data.from_port == 0)
        return fail(ErrorCode::corrupt, "a programmatic edge starts at port 1 or 2, this one at 0");
    return {};
}

Result<void> check_edges(const Graph& graph)
{
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
        const Edge& edge = graph.edges[i];
        if (edge.to >= graph.nodes.size())
            return fail(ErrorCode::corrupt, "edge {}: {} -> {} is out of range, the graph has {} nodes", i, edge.from,
                        edge.to, graph.nodes.size());
        if (edge.from >= edge.to)
            return fail(ErrorCode::corrupt, "edge {}: {} -> {} does not go from a lower to a higher node", i, edge.from,
                        edge.to);
        if (i > 0 && std::pair{graph.edges[i - 1].from, graph.edges[i - 1].to} >= std::pair{edge.from, edge.to})
            return fail(ErrorCode::corrupt, "edge {}: {} -> {} is repeated or out of order", i, edge.from, edge.to);
        if (auto ok = check_edge_data(edge, graph); !ok)
            return within(fmt::format("edge {}: {} -> {}", i, edge.from, edge.to), std::move(ok.error()));
    }
    return {};
}

} // namespace

Result<void> validate(const Graph& graph, const Limits& limits)
{
    if (auto ok = check_count("regions", graph.regions.size(), limits.regions); !ok) return ok;
    if (auto ok = check_count("scalars", graph.scalars.size(), limits.scalars); !ok) return ok;
    if (auto ok = check_count("images", graph.images.size(), limits.images); !ok) return ok;
    if (auto ok = check_count("events", graph.events.size(), limits.events); !ok) return ok;
    if (auto ok = check_count("semaphores", graph.semaphores.size(), limits.semaphores); !ok) return ok;
    if (auto ok = check_count("nodes", graph.nodes.size(), limits.nodes); !ok) return ok;
    if (auto ok = check_count("edges", graph.edges.size(), limits.edges); !ok) return ok;
    if (const auto size = footprint(graph); size > limits.payload_bytes)
        return fail(ErrorCode::corrupt, "graph takes {} bytes of memory, over the limit of {}", size,
                    limits.payload_bytes);
    Names names;
    if (auto ok = check_regions(graph, limits, names); !ok) return ok;
    if (auto ok = check_scalars(graph, names); !ok) return ok;
    if (auto ok = check_images(graph, limits); !ok) return ok;
    if (auto ok = check_names("event", graph.events); !ok) return ok;
    if (auto ok = check_names("semaphore", graph.semaphores); !ok) return ok;
    if (auto ok = check_nodes(graph, limits); !ok) return ok;
    return check_edges(graph);
}

} // namespace warmgraph::cachefmt
