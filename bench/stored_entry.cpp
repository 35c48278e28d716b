#include "stored_entry.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <regex>
#include <set>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checked.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::bench {
namespace {

using cachefmt::Graph;
using cachefmt::Region;
using cachefmt::RegionKind;

std::string full_name(const cachefmt::FunctionKey& key)
{
    return fmt::format("{}/{}/{}", key.model_info, key.rank, key.function);
}

cachefmt::FunctionKey find_function(const store::LocalStore& store, const EntryName& name)
{
    const auto functions = checked(store.functions());
    std::vector<cachefmt::FunctionKey> found;
    for (const auto& key : functions)
        if ((name.model == key.model_info || name.model == cachefmt::model_of(key.model_info)) &&
            key.function == name.function && key.rank == name.rank)
            found.push_back(key);
    // Of a model that was recorded on both, the one that is measured here.
    if (found.size() > 1)
        std::erase_if(found,
                      [](const auto& key) { return key.model_info.find("_cudagraphcache_") == key.model_info.npos; });
    if (found.size() == 1) return found.front();
    std::string list;
    for (const auto& key : functions) list += "\n  " + full_name(key);
    throw std::runtime_error(fmt::format(
        "{} function '{}' of model '{}' and rank '{}' in {}{}", found.empty() ? "no" : "more than one", name.function,
        name.model, name.rank, store.root().string(), list.empty() ? ", which is empty" : "; there are:" + list));
}

cachefmt::EntryKey find_entry(const store::LocalStore& store, const EntryName& name)
{
    const auto function = find_function(store, name);
    std::vector<Digest> found;
    std::string list;
    for (const auto& variant : checked(store.variants(function))) {
        const bool is_graph = variant.header && variant.header->kind == cachefmt::EntryKind::graph;
        list += fmt::format("\n  {}{}", to_hex(variant.guards_digest).substr(0, 12),
                            !variant.header ? ": " + variant.header.error().message
                            : is_graph      ? ""
                                            : ": tombstone, " + variant.header->info.reason);
        if (is_graph && to_hex(variant.guards_digest).starts_with(name.digits)) found.push_back(variant.guards_digest);
    }
    if (found.size() == 1) return {function, found.front()};
    throw std::runtime_error(fmt::format("{} has {} entries that could be meant, expected one{}{}", full_name(function),
                                         found.size(), found.size() > 1 ? ": choose with --entry" : "", list));
}

/// Kinds as Node's alternatives.
constexpr std::array k_kinds{
    "empty", "kernel", "copy", "fill", "event record", "event wait", "host", "memory operations", "semaphores"};
static_assert(k_kinds.size() == std::variant_size_v<cachefmt::Node>);

bool is_supported(const cachefmt::Node& node)
{
    return std::holds_alternative<cachefmt::EmptyNode>(node) || std::holds_alternative<cachefmt::KernelNode>(node) ||
           std::holds_alternative<cachefmt::CopyNode>(node) || std::holds_alternative<cachefmt::FillNode>(node);
}

/// "2 host nodes, 1 event wait node"
std::string kinds_text(const Graph& graph, bool (*counts)(const cachefmt::Node&))
{
    std::array<std::size_t, k_kinds.size()> of_kind{};
    for (const auto& node : graph.nodes)
        if (counts(node)) ++of_kind.at(node.index());
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < of_kind.size(); ++i)
        if (of_kind.at(i) != 0) parts.push_back(fmt::format("{} {}", of_kind.at(i), k_kinds.at(i)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) noexcept
{
    return (value + alignment - 1) / alignment * alignment;
}

/// The region's, or of a tensor that reaches further.
std::uint64_t bytes_of(const Region& region, const cachefmt::TensorSpec& tensor)
{
    std::uint64_t last = 0;
    for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
        if (tensor.sizes[d] == 0) return std::max<std::uint64_t>(region.size, 1);
        last += static_cast<std::uint64_t>(tensor.sizes[d] - 1) * static_cast<std::uint64_t>(tensor.strides[d]);
    }
    return std::max({region.size, (last + 1) * size_of(tensor.dtype), std::uint64_t{1}});
}

void place_callers(const cachefmt::Entry& entry, MemoryPlan& plan)
{
    constexpr std::uint64_t k_alignment = 256; // the strongest class that a guard names
    const auto& tensors = entry.header.guards.tensors;
    for (std::size_t first = 0; first < tensors.size(); ++first) {
        if (tensors[first].alias_group != first) continue;
        // Distances count from the group's first tensor, and may be negative.
        std::int64_t begin = 0, end = 0;
        const auto distance_of = [](const cachefmt::TensorSpec& tensor) { return tensor.distance.value_or(0); };
        for (std::size_t i = first; i < tensors.size(); ++i) {
            if (tensors[i].alias_group != first) continue;
            begin = std::min(begin, distance_of(tensors[i]));
            end = std::max(end, distance_of(tensors[i]) +
                                    static_cast<std::int64_t>(bytes_of(entry.graph.regions[i], tensors[i])));
        }
        // The first tensor keeps the alignment of the allocation.
        const std::uint64_t before = align_up(static_cast<std::uint64_t>(-begin), k_alignment);
        for (std::size_t i = first; i < tensors.size(); ++i)
            if (tensors[i].alias_group == first)
                plan.regions[i] = {plan.allocations.size(),
                                   before + static_cast<std::uint64_t>(distance_of(tensors[i]))};
        plan.allocations.push_back(
            {before + static_cast<std::uint64_t>(end), k_alignment, entry.graph.regions[first].space});
    }
    plan.callers = plan.allocations.size();
}

void place_own(const cachefmt::Entry& entry, MemoryPlan& plan)
{
    constexpr std::uint64_t k_alignment = 256;
    const auto& regions = entry.graph.regions;
    MemoryPlan::Allocation arena{0, k_alignment};
    const std::size_t arena_index = plan.allocations.size();
    for (std::size_t i = callers_regions(entry); i < regions.size(); ++i) {
        if (regions[i].kind != RegionKind::arena) continue;
        const auto alignment = std::max<std::uint64_t>(k_alignment, regions[i].alignment);
        arena.size = align_up(arena.size, alignment);
        plan.regions[i] = {arena_index, arena.size};
        arena.size += regions[i].size;
        arena.alignment = std::max(arena.alignment, alignment);
    }
    arena.size = std::max<std::uint64_t>(arena.size, 1);
    plan.allocations.push_back(arena);
    for (std::size_t i = callers_regions(entry); i < regions.size(); ++i) {
        if (regions[i].kind != RegionKind::constant) continue;
        plan.regions[i] = {plan.allocations.size(), 0};
        plan.allocations.push_back({std::max<std::uint64_t>(regions[i].size, 1),
                                    std::max<std::uint64_t>(k_alignment, regions[i].alignment), regions[i].space});
    }
}

/// Of the number that the text says, or the nearest that the type has.
std::uint64_t bits_of(double value, DType dtype)
{
    std::uint64_t bits = 0;
    const auto put = [&](auto number) { std::memcpy(&bits, &number, sizeof number); };
    switch (dtype) {
    case DType::f32: put(static_cast<float>(value)); break;
    case DType::f64: put(value); break;
    case DType::u32: put(static_cast<std::uint32_t>(value)); break;
    case DType::u64: put(static_cast<std::uint64_t>(value)); break;
    case DType::i64: put(static_cast<std::int64_t>(value)); break;
    default: put(static_cast<std::int32_t>(value)); break;
    }
    return bits;
}

} // namespace

StoredEntry read_entry(const EntryName& name)
{
    store::StoreOptions options;
    options.access = store::StoreMode::read_only;
    const auto store = checked(store::LocalStore::open(name.cache_dir, options));
    const auto key = find_entry(*store, name);
    auto entry = checked(store->entry(key, store::Reading::ahead));
    if (!entry) throw std::runtime_error("the entry was removed while it was looked up");
    StoredEntry result{std::move(*entry), {}};
    const auto add = [&](const Digest& digest) {
        if (result.images.contains(digest)) return;
        auto bytes = checked(store->image(digest));
        if (!bytes) throw std::runtime_error(fmt::format("image {} is missing or damaged", short_hex(digest)));
        result.images.emplace(digest, std::move(*bytes));
    };
    for (const auto& image : result.entry.graph.images) add(image.digest);
    for (const Region& region : result.entry.graph.regions)
        if (region.kind == RegionKind::constant && region.digest != Digest{}) add(region.digest);
    return result;
}

void require_supported(const StoredEntry& stored)
{
    const auto& header = stored.entry.header;
    const Graph& graph = stored.entry.graph;
    const auto& facts = header.guards.facts;
    const auto backend = std::ranges::find(facts, "backend", &cachefmt::Fact::name);
    const std::string is = backend == facts.end() ? "unknown" : backend->value;
    if (is != "cuda")
        throw std::runtime_error(fmt::format("{} {} is not a CUDA entry: its backend is '{}', expected 'cuda'",
                                             full_name(header.key.function), short_hex(header.key.guards_digest), is));
    const std::string others = kinds_text(graph, [](const cachefmt::Node& node) { return !is_supported(node); });
    if (!others.empty())
        throw std::runtime_error(
            fmt::format("the entry has nodes that the yardstick does not make: {}; it knows empty, "
                        "kernel, copy and fill nodes",
                        others));
    const auto& tensors = header.guards.tensors;
    if (tensors.size() > graph.regions.size())
        throw std::runtime_error("the entry guards more tensors than it has regions");
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i].name != graph.regions[i].name || tensors[i].alias_group > i)
            throw std::runtime_error(fmt::format("region {} of the entry is '{}', its guards have '{}' there", i,
                                                 graph.regions[i].name, tensors[i].name));
}

std::string describe(const StoredEntry& stored)
{
    const Graph& graph = stored.entry.graph;
    std::set<std::pair<std::uint32_t, std::string>> functions;
    std::size_t attributes = 0;
    for (const auto& node : graph.nodes) {
        const auto* const kernel = std::get_if<cachefmt::KernelNode>(&node);
        if (kernel == nullptr) continue;
        functions.emplace(kernel->image, kernel->kernel);
        attributes += kernel->attributes.size();
    }
    std::set<cachefmt::EdgeData> edge_data;
    for (const auto& edge : graph.edges) edge_data.insert(edge.data);
    std::uint64_t code = 0, callers = 0, own = 0;
    for (const auto& image : graph.images) code += image.size;
    for (const Region& region : graph.regions)
        (region.kind == RegionKind::arena || region.kind == RegionKind::constant ? own : callers) += region.size;
    return fmt::format(
        "{} nodes ({}; {} functions, {} node attributes), {} edges in {} groups, {} images of {:.2f} MB, "
        "{} regions: {:.1f} MB of the caller's, {:.1f} MB of its own",
        graph.nodes.size(), kinds_text(graph, [](const cachefmt::Node&) { return true; }), functions.size(), attributes,
        graph.edges.size(), edge_data.size(), graph.images.size(), static_cast<double>(code) / 1e6,
        graph.regions.size(), static_cast<double>(callers) / 1e6, static_cast<double>(own) / 1e6);
}

std::size_t callers_regions(const cachefmt::Entry& entry) noexcept { return entry.header.guards.tensors.size(); }

MemoryPlan plan_memory(const cachefmt::Entry& entry)
{
    MemoryPlan plan;
    plan.regions.resize(entry.graph.regions.size());
    place_callers(entry, plan);
    place_own(entry, plan);
    return plan;
}

std::vector<ScalarUse> scalars_of(const cachefmt::Entry& entry)
{
    const auto& facts = entry.header.guards.facts;
    const auto interface = std::ranges::find(facts, "interface", &cachefmt::Fact::name);
    const std::string text = interface == facts.end() ? "" : interface->value;
    // "; scalar position i32 [0, 255]" (Interface::text)
    static const std::regex k_scalar(R"re(; scalar (\S+) (\S+) \[([^,\]]+), ([^,\]]+)\])re");
    std::vector<ScalarUse> result;
    for (const auto& scalar : entry.graph.scalars) result.push_back({scalar.name, scalar.type, {}, {}, 0});
    for (std::sregex_iterator at(text.begin(), text.end(), k_scalar), end; at != end; ++at) {
        const auto found = std::ranges::find(result, at->str(1), &ScalarUse::name);
        if (found == result.end()) continue;
        found->low = at->str(3), found->high = at->str(4);
        const double low = std::stod(found->low), high = std::stod(found->high);
        if (low > 0 || high < 0) found->bits = bits_of(low > 0 ? low : high, found->dtype);
    }
    return result;
}

} // namespace warmgraph::bench
