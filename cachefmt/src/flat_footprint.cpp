#include "flat_footprint.hpp"

#include <algorithm>

#include "check_count.hpp"
#include "flat_parse.hpp"
#include "heap_size.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
namespace {

/// A table becomes at least a slot; a memory operation becomes two, a copy node four.
constexpr std::uint64_t k_least_of_table = sizeof(Slot);
constexpr std::uint64_t k_most_growth = 24; // memory for each byte of a payload
constexpr std::uint64_t k_free_growth = 64ULL << 10;
static_assert(sizeof(Node) <= 8 * k_most_growth, "an empty node takes 8 bytes in the payload");
static_assert(sizeof(MemoryOperation) >= 2 * k_least_of_table && sizeof(Node) >= 4 * k_least_of_table &&
              sizeof(SemaphoreUse) >= 2 * k_least_of_table);

/// Sums bytes of memory and stops at the budget.
class Sum {
public:
    explicit Sum(std::uint64_t budget) : m_left(budget) {}
    Sum& add(std::uint64_t bytes) noexcept
    {
        m_is_over = m_is_over || bytes > m_left - m_used;
        if (!m_is_over) m_used += bytes;
        return *this;
    }
    template <class Text>
    Sum& text(const Text* text) noexcept
    {
        return add(text_size(count(text)));
    }
    [[nodiscard]] bool is_over() const noexcept { return m_is_over; }
    [[nodiscard]] std::optional<std::uint64_t> bytes() const noexcept
    {
        return m_is_over ? std::nullopt : std::optional{m_used};
    }

    /// Adds the vector itself and, through `add_one`, each item. Stops at the budget.
    template <class Out, class Tables, class Add>
    Sum& items(const Tables* tables, Add add_one)
    {
        add(items_size<Out>(count(tables)));
        for (std::uint32_t i = 0; i < count(tables) && !m_is_over; ++i) add_one(*tables->Get(i));
        return *this;
    }
    Sum& lines(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* lines)
    {
        return items<std::string>(lines, [this](const flatbuffers::String& line) { text(&line); });
    }

private:
    std::uint64_t m_left, m_used = 0;
    bool m_is_over = false;
};

void add_image(Sum& sum, const flat::Image& image)
{
    sum.text(image.label()).items<ModuleVariable>(image.variables(), [&](const flat::Variable& variable) {
        sum.text(variable.name()).add(heap_size(count(variable.contents())));
        sum.add(items_size<Slot>(count(variable.slots())));
    });
}

/// Checks that each record names one edge, in ascending order. Empty records are refused: equal graphs must have equal
/// bytes.
Result<void> check_edge_data(const flat::Payload& payload)
{
    for (std::uint32_t i = 0; i < count(payload.edge_data()); ++i) {
        const flat::EdgeData& record = *payload.edge_data()->Get(i);
        if (record.edge() >= count(payload.edges()))
            return fail(ErrorCode::corrupt, "edge data {}: edge {} is out of range, the graph has {}", i, record.edge(),
                        count(payload.edges()));
        if (i > 0 && payload.edge_data()->Get(i - 1)->edge() >= record.edge())
            return fail(ErrorCode::corrupt, "edge data {}: edge {} is repeated or out of order", i, record.edge());
        if (record.from_port() == 0 && record.to_port() == 0 && record.type() == 0)
            return fail(ErrorCode::corrupt,
                        "edge data {}: it has only default values for edge {}, expected none to be stored", i,
                        record.edge());
    }
    return {};
}

Result<void> check_images(const flat::Payload& payload, const Limits& limits)
{
    for (std::uint32_t i = 0; i < count(payload.images()); ++i)
        if (auto ok =
                check_count("variables", count(payload.images()->Get(i)->variables()), limits.variables_per_image);
            !ok)
            return within(fmt::format("image {}", i), std::move(ok.error()));
    return {};
}

Result<void> check_node(const flat::Node& node, std::uint64_t index, const Limits& limits)
{
    if (node.work_type() > flat::Work::MAX)
        return fail(ErrorCode::corrupt, "node {}: kind {} is unknown", index, static_cast<int>(node.work_type()));
    if (node.work_type() == flat::Work::NONE) return {};
    if (node.work() == nullptr)
        return fail(ErrorCode::corrupt, "node {}: its {} is missing", index, flat::EnumNameWork(node.work_type()));
    if (auto ok = format_of(node).check_flat(node, limits); !ok)
        return within(fmt::format("node {}", index), std::move(ok.error()));
    return {};
}

} // namespace

Result<void> check_counts(const flat::Payload& payload, const Limits& limits)
{
    if (auto ok = check_count("regions", count(payload.regions()), limits.regions); !ok) return ok;
    if (auto ok = check_count("scalars", count(payload.scalars()), limits.scalars); !ok) return ok;
    if (auto ok = check_count("images", count(payload.images()), limits.images); !ok) return ok;
    if (auto ok = check_count("nodes", count(payload.nodes()), limits.nodes); !ok) return ok;
    if (auto ok = check_count("edges", count(payload.edges()), limits.edges); !ok) return ok;
    if (auto ok = check_count("events", count(payload.events()), limits.events); !ok) return ok;
    if (auto ok = check_count("semaphores", count(payload.semaphores()), limits.semaphores); !ok) return ok;
    if (auto ok = check_edge_data(payload); !ok) return ok;
    if (auto ok = check_images(payload, limits); !ok) return ok;
    for (std::uint32_t i = 0; i < count(payload.nodes()); ++i)
        if (auto ok = check_node(*payload.nodes()->Get(i), i, limits); !ok) return ok;
    return {};
}

std::uint64_t memory_budget(std::uint64_t raw_bytes, std::uint64_t cap) noexcept
{
    return std::min(cap, k_free_growth + raw_bytes * k_most_growth);
}

std::uint32_t most_tables(std::uint64_t budget) noexcept
{
    constexpr std::uint64_t k_roots = 4; // tables without a parent: header and info, or payload
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(budget / k_least_of_table + k_roots, 0xFFFF'FFFF));
}

std::optional<std::uint64_t> flat_footprint(const flat::Header& header, std::uint64_t budget)
{
    const flat::Info& info = *header.info();
    Sum sum{budget};
    for (const auto* text : {header.model_info(), header.rank(), header.function(), info.created(), info.created_by(),
                             info.verification(), info.reason()})
        sum.text(text);
    sum.lines(info.difference()).lines(info.scalar_proofs());
    sum.add(items_size<CompiledWithin>(count(info.compiled())));
    sum.items<Fact>(header.facts(), [&](const flat::Fact& fact) { sum.text(fact.name()).text(fact.value()); });
    sum.items<TensorSpec>(header.tensors(), [&](const flat::TensorSpec& tensor) {
        sum.text(tensor.name()).text(tensor.device());
        sum.add(items_size<std::int64_t>(count(tensor.sizes())));
        sum.add(items_size<std::int64_t>(count(tensor.strides())));
    });
    sum.items<ValueSpec>(header.values(), [&](const flat::ValueSpec& value) { sum.text(value.name()); });
    return sum.bytes();
}

std::optional<std::uint64_t> flat_footprint(const flat::Payload& payload, std::uint64_t budget)
{
    Sum sum{budget};
    sum.add(items_size<Edge>(count(payload.edges())));
    sum.items<Region>(payload.regions(), [&](const flat::Region& region) {
        sum.text(region.name()).add(heap_size(count(region.contents())));
    });
    sum.items<Scalar>(payload.scalars(), [&](const flat::Scalar& scalar) { sum.text(scalar.name()); });
    sum.items<ImageRef>(payload.images(), [&](const flat::Image& image) { add_image(sum, image); });
    sum.lines(payload.events()).lines(payload.semaphores());
    sum.items<Node>(payload.nodes(), [&](const flat::Node& node) { sum.add(format_of(node).flat_footprint(node)); });
    return sum.bytes();
}

Result<void> check_footprint(const flat::Header& header, std::uint64_t budget)
{
    if (flat_footprint(header, budget)) return {};
    return fail(ErrorCode::corrupt, "header would take more than {} bytes of memory, the limit", budget);
}

Result<void> check_footprint(const flat::Payload& payload, std::uint64_t budget)
{
    if (flat_footprint(payload, budget)) return {};
    return fail(ErrorCode::corrupt, "graph would take more than {} bytes of memory, the limit for its payload", budget);
}

} // namespace warmgraph::cachefmt
