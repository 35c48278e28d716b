#include "warmgraph/cachefmt/halves.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "slots.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::string_view k_saved_prefix = "saved.";

std::string prefix_of(Half half) { return std::string(to_string(half)) + "."; }

std::optional<std::string> without_prefix(const std::string& name, std::string_view prefix)
{
    if (!name.starts_with(prefix)) return std::nullopt;
    return name.substr(prefix.size());
}

// --- guards

/// Tensors of one half, whose groups are indices into its own list.
std::vector<TensorSpec> half_tensors(const std::vector<TensorSpec>& tensors, const std::string& prefix)
{
    const auto first =
        std::ranges::find_if(tensors, [&](const auto& tensor) { return tensor.name.starts_with(prefix); });
    const auto offset = static_cast<std::uint32_t>(first - tensors.begin());
    std::vector<TensorSpec> result;
    for (auto tensor = first; tensor != tensors.end(); ++tensor) {
        auto name = without_prefix(tensor->name, prefix);
        if (!name) break;
        TensorSpec& one = result.emplace_back(*tensor);
        one.name = std::move(*name);
        one.alias_group = tensor->alias_group - std::min(offset, tensor->alias_group);
    }
    return result;
}

std::vector<ValueSpec> half_values(const std::vector<ValueSpec>& values, const std::string& prefix)
{
    std::vector<ValueSpec> result;
    for (const ValueSpec& value : values)
        if (auto name = without_prefix(value.name, prefix))
            result.push_back({std::move(*name), value.dtype, value.bits});
    return result;
}

Guards half_guards(const Guards& pair, Half half)
{
    const std::string prefix = prefix_of(half);
    Guards result{pair.facts, half_tensors(pair.tensors, prefix), half_values(pair.values, prefix)};
    if (half == Half::forward) return result;
    const Digest forward = guards_digest(half_guards(pair, Half::forward));
    Fact fact{k_forward_fact, to_hex(forward), Role::must_match};
    const auto place = std::ranges::lower_bound(result.facts, fact.name, {}, &Fact::name);
    result.facts.insert(place, std::move(fact));
    return result;
}

void append(Guards& pair, const Guards& half, const std::string& prefix)
{
    const auto offset = static_cast<std::uint32_t>(pair.tensors.size());
    for (TensorSpec tensor : half.tensors) {
        tensor.name = prefix + tensor.name;
        tensor.alias_group += offset;
        pair.tensors.push_back(std::move(tensor));
    }
    for (const ValueSpec& value : half.values) pair.values.push_back({prefix + value.name, value.dtype, value.bits});
}

Result<Guards> join_guards(const EntryHeader& forward, const EntryHeader& backward)
{
    std::vector<Fact> facts = backward.guards.facts;
    const auto of = std::ranges::find(facts, k_forward_fact, &Fact::name);
    if (of == facts.end() || of->value != to_hex(forward.key.guards_digest))
        return fail(ErrorCode::not_recordable, "backward was recorded for another forward than {}",
                    short_hex(forward.key.guards_digest));
    facts.erase(of);
    if (facts != forward.guards.facts || !is_pair(forward.guards))
        return fail(ErrorCode::not_recordable, "forward and backward were recorded under other facts");
    Guards result{std::move(facts), {}, {}};
    append(result, forward.guards, prefix_of(Half::forward));
    append(result, backward.guards, prefix_of(Half::backward));
    return result;
}

// --- graphs

/// Events and semaphores, which no pair has.
bool has_outside_work(const Node& node) noexcept
{
    return std::holds_alternative<EventRecordNode>(node) || std::holds_alternative<EventWaitNode>(node) ||
           std::holds_alternative<SemaphoresNode>(node);
}

/// Where regions, scalars and images of one graph are in another; nullopt: nowhere.
struct Renumbering {
    using Numbers = std::vector<std::optional<std::uint32_t>>;
    Numbers regions, scalars, images;

    [[nodiscard]] static bool apply(const Numbers& numbers, std::uint32_t& index)
    {
        if (index >= numbers.size() || !numbers[index]) return false;
        index = *numbers[index];
        return true;
    }
    [[nodiscard]] bool operator()(Slot& slot) const
    {
        return apply(slot.kind == SlotKind::region ? regions : scalars, slot.target);
    }
    [[nodiscard]] bool operator()(Node& node) const
    {
        auto* const kernel = std::get_if<KernelNode>(&node);
        bool fits = !has_outside_work(node) && (kernel == nullptr || apply(images, kernel->image));
        for_each_slot(node, [&](Slot& slot) { fits = (*this)(slot) && fits; });
        return fits;
    }
    [[nodiscard]] bool operator()(Region& region) const { return !region.inside || apply(regions, *region.inside); }
    [[nodiscard]] bool operator()(ImageRef& image) const
    {
        return std::ranges::all_of(image.variables, [this](ModuleVariable& one) {
            return std::ranges::all_of(one.slots, [this](Slot& slot) { return (*this)(slot); });
        });
    }
};

/// Appends `first`, `first + 1` ... for each of `count`.
void number_on(Renumbering::Numbers& numbers, std::size_t count, std::size_t first)
{
    for (std::size_t i = 0; i < count; ++i) numbers.emplace_back(static_cast<std::uint32_t>(first + i));
}

class Joiner {
public:
    explicit Joiner(std::span<const std::string> saved) : m_saved(saved) {}

    Result<void> add(const Graph& half, const std::string& prefix)
    {
        if (!half.events.empty() || !half.semaphores.empty())
            return fail(ErrorCode::unsupported, "it has events or semaphores, which a pair cannot have");
        Renumbering places;
        number_on(places.scalars, half.scalars.size(), m_result.scalars.size());
        number_on(places.images, half.images.size(), m_result.images.size());
        const std::size_t first_region = m_result.regions.size();
        for (const Region& region : half.regions) places.regions.emplace_back(place_of(region, prefix));
        bool fits = true;
        for (std::size_t i = first_region; i < m_result.regions.size(); ++i) fits = places(m_result.regions[i]) && fits;
        for (const Scalar& scalar : half.scalars) m_result.scalars.push_back({prefix + scalar.name, scalar.type});
        for (const ImageRef& image : half.images) fits = places(m_result.images.emplace_back(image)) && fits;
        const auto first_node = static_cast<std::uint32_t>(m_result.nodes.size());
        for (const Node& node : half.nodes) fits = places(m_result.nodes.emplace_back(node)) && fits;
        for (const Edge& edge : half.edges)
            m_result.edges.push_back({edge.from + first_node, edge.to + first_node, edge.data});
        if (!fits) return fail(ErrorCode::not_recordable, "one of its nodes uses what its graph does not have");
        return {};
    }
    void end_forward() { m_result.second_half = static_cast<std::uint32_t>(m_result.nodes.size()); }
    [[nodiscard]] Graph result() && { return std::move(m_result); }

private:
    [[nodiscard]] bool is_saved(const Region& region) const
    {
        return (region.kind == RegionKind::output || region.kind == RegionKind::input) &&
               std::ranges::find(m_saved, region.name) != m_saved.end();
    }
    /// What both halves use stands where forward's is.
    std::uint32_t place_of(const Region& region, const std::string& prefix)
    {
        const std::string name = is_saved(region) ? std::string(k_saved_prefix) + region.name : prefix + region.name;
        const auto known = std::ranges::find(m_result.regions, name, &Region::name);
        const auto index = static_cast<std::uint32_t>(known - m_result.regions.begin());
        if (known != m_result.regions.end()) {
            known->alignment = std::max(known->alignment, region.alignment);
            return index;
        }
        Region& added = m_result.regions.emplace_back(region);
        added.name = name;
        if (is_saved(region)) added.kind = RegionKind::arena;
        return index;
    }

    std::span<const std::string> m_saved;
    Graph m_result;
};

class Parter {
public:
    Parter(const Graph& pair, Half half) : m_pair(pair), m_half(half), m_prefix(prefix_of(half)) {}

    Result<Graph> run() &&
    {
        if (!m_pair.second_half || !m_pair.events.empty() || !m_pair.semaphores.empty())
            return fail(ErrorCode::corrupt, "the graph has no two halves");
        add_regions();
        add_scalars();
        if (!add_nodes() || !add_edges())
            return fail(ErrorCode::corrupt, "the two halves of the graph do not come apart: {} uses what it has not",
                        to_string(m_half));
        return std::move(m_result);
    }

private:
    /// As the half declares them: its inputs, among them what was saved; then the rest in its order. In forward what
    /// is saved lies among the outputs, where it was.
    void add_regions()
    {
        m_places.regions.resize(m_pair.regions.size());
        if (m_half == Half::backward) {
            take_regions([this](const Region& region) { return is_own(region) && region.kind == RegionKind::input; });
            take_regions([](const Region& region) { return region.name.starts_with(k_saved_prefix); });
            take_regions([this](const Region& region) { return is_own(region) && region.kind != RegionKind::input; });
        } else {
            take_regions(
                [this](const Region& region) { return is_own(region) || region.name.starts_with(k_saved_prefix); });
        }
    }
    [[nodiscard]] bool is_own(const Region& region) const { return region.name.starts_with(m_prefix); }
    template <class Wanted>
    void take_regions(const Wanted& wanted)
    {
        for (std::size_t i = 0; i < m_pair.regions.size(); ++i) {
            if (!wanted(m_pair.regions[i])) continue;
            m_places.regions[i] = static_cast<std::uint32_t>(m_result.regions.size());
            Region& region = m_result.regions.emplace_back(m_pair.regions[i]);
            if (auto own = without_prefix(region.name, m_prefix)) {
                region.name = std::move(*own);
                continue;
            }
            region.name = region.name.substr(k_saved_prefix.size());
            region.kind = m_half == Half::forward ? RegionKind::output : RegionKind::input;
        }
    }
    void add_scalars()
    {
        m_places.scalars.resize(m_pair.scalars.size());
        for (std::size_t i = 0; i < m_pair.scalars.size(); ++i) {
            auto own = without_prefix(m_pair.scalars[i].name, m_prefix);
            if (!own) continue;
            m_places.scalars[i] = static_cast<std::uint32_t>(m_result.scalars.size());
            m_result.scalars.push_back({std::move(*own), m_pair.scalars[i].type});
        }
    }
    [[nodiscard]] bool is_mine(std::uint32_t node) const
    {
        return (node < *m_pair.second_half) == (m_half == Half::forward);
    }
    /// The images are those that its kernels use, in their order.
    void add_images()
    {
        m_places.images.resize(m_pair.images.size());
        std::vector<bool> used(m_pair.images.size());
        for (std::uint32_t i = 0; i < m_pair.nodes.size(); ++i)
            if (const auto* kernel = std::get_if<KernelNode>(&m_pair.nodes[i]))
                if (is_mine(i) && kernel->image < used.size()) used[kernel->image] = true;
        for (std::size_t i = 0; i < used.size(); ++i) {
            if (!used[i]) continue;
            m_places.images[i] = static_cast<std::uint32_t>(m_result.images.size());
            m_result.images.push_back(m_pair.images[i]);
        }
    }
    [[nodiscard]] bool add_nodes()
    {
        add_images();
        for (std::uint32_t i = 0; i < m_pair.nodes.size(); ++i)
            if (is_mine(i) && !m_places(m_result.nodes.emplace_back(m_pair.nodes[i]))) return false;
        return std::ranges::all_of(m_result.regions, [this](Region& region) { return m_places(region); }) &&
               std::ranges::all_of(m_result.images, [this](ImageRef& image) { return m_places(image); });
    }
    [[nodiscard]] bool add_edges()
    {
        const std::uint32_t first = m_half == Half::forward ? 0 : *m_pair.second_half;
        for (const Edge& edge : m_pair.edges) {
            if (is_mine(edge.from) != is_mine(edge.to)) return false;
            if (is_mine(edge.from)) m_result.edges.push_back({edge.from - first, edge.to - first, edge.data});
        }
        return true;
    }

    const Graph& m_pair;
    Half m_half;
    std::string m_prefix;
    Renumbering m_places;
    Graph m_result;
};

// --- entries

std::string joined_text(const std::string& forward, const std::string& backward)
{
    return forward == backward ? forward : fmt::format("forward: {}; backward: {}", forward, backward);
}

EntryInfo join_info(const EntryInfo& forward, const EntryInfo& backward)
{
    EntryInfo result = backward;
    result.record_ms += forward.record_ms;
    result.answer_ms += forward.answer_ms;
    result.verification = joined_text(forward.verification, backward.verification);
    result.node_count += forward.node_count;
    result.image_count += forward.image_count;
    result.unproven += forward.unproven;
    result.library_constants += forward.library_constants;
    result.unused_words += forward.unused_words;
    result.compiled.insert(result.compiled.begin(), forward.compiled.begin(), forward.compiled.end());
    result.scalar_proofs.clear();
    for (const auto& proof : forward.scalar_proofs) result.scalar_proofs.push_back(prefix_of(Half::forward) + proof);
    for (const auto& proof : backward.scalar_proofs) result.scalar_proofs.push_back(prefix_of(Half::backward) + proof);
    return result;
}

} // namespace

std::string_view to_string(Half half) noexcept { return half == Half::forward ? "forward" : "backward"; }

bool is_pair(const Guards& guards) noexcept
{
    return std::ranges::find(guards.facts, k_saved_fact, &Fact::name) != guards.facts.end();
}

std::optional<EntryHeader> half_header(const EntryHeader& pair, Half half)
{
    if (!is_pair(pair.guards)) return std::nullopt;
    EntryHeader result = pair;
    result.guards = half_guards(pair.guards, half);
    result.key.guards_digest = guards_digest(result.guards);
    return result;
}

Result<Entry> half_of(const Entry& pair, Half half)
{
    auto header = half_header(pair.header, half);
    if (!header) return fail(ErrorCode::corrupt, "the entry is none of a pair");
    if (header->kind != EntryKind::graph) return Entry{std::move(*header), {}};
    auto graph = Parter{pair.graph, half}.run();
    if (!graph) return std::unexpected(graph.error());
    header->info.node_count = static_cast<std::uint32_t>(graph->nodes.size());
    header->info.image_count = static_cast<std::uint32_t>(graph->images.size());
    return Entry{std::move(*header), std::move(*graph)};
}

Result<Entry> join(const Entry& forward, const Entry& backward, std::span<const std::string> saved)
{
    auto guards = join_guards(forward.header, backward.header);
    if (!guards) return std::unexpected(guards.error());
    Joiner joiner{saved};
    if (auto added = joiner.add(forward.graph, prefix_of(Half::forward)); !added)
        return within("forward", added.error());
    joiner.end_forward();
    if (auto added = joiner.add(backward.graph, prefix_of(Half::backward)); !added)
        return within("backward", added.error());
    const EntryKey key{forward.header.key.function, guards_digest(*guards)};
    Entry result{{key, EntryKind::graph, std::move(*guards), join_info(forward.header.info, backward.header.info)},
                 std::move(joiner).result()};
    result.header.info.image_count = static_cast<std::uint32_t>(result.graph.images.size());
    return result;
}

} // namespace warmgraph::cachefmt
