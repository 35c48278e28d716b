// Makes random valid entries (validate() accepts them) from a seed. They are for round trips, stores, and the corpora
// of fuzzers.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::test {

/// Returns $WARMGRAPH_TEST_SEED, or a new seed. Prints it, so that a failure can be repeated.
inline std::uint64_t test_seed()
{
    const char* given = std::getenv("WARMGRAPH_TEST_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::cout << "WARMGRAPH_TEST_SEED=" << seed << '\n';
    return seed;
}

class RandomEntry {
public:
    explicit RandomEntry(std::uint64_t seed, std::size_t max_nodes = 24) : m_engine(seed), m_max_nodes(max_nodes) {}

    [[nodiscard]] cachefmt::Graph graph()
    {
        cachefmt::Graph graph;
        for (std::uint64_t i = 0, n = 3 + below(6); i < n; ++i) graph.regions.push_back(region(i));
        graph.regions[0].kind = cachefmt::RegionKind::arena; // at least one region must be writable
        graph.regions[0].contents.clear();
        graph.regions[0].space = cachefmt::MemorySpace::device;
        for (std::uint64_t i = 0, n = 1 + below(3); i < n; ++i)
            graph.scalars.push_back(
                {"scalar" + std::to_string(i), pick({DType::i32, DType::u64, DType::f32, DType::i64})});
        for (std::uint64_t i = 0, n = 1 + below(3); i < n; ++i)
            graph.images.push_back({digest(), 1 + below(100'000), below(2) == 0 ? Digest{} : digest(),
                                    "program" + std::to_string(i), variables()});
        for (std::uint64_t i = 0, n = below(3); i < n; ++i) graph.events.push_back("event" + std::to_string(i));
        for (std::uint64_t i = 0, n = below(3); i < n; ++i) graph.semaphores.push_back("semaphore" + std::to_string(i));
        for (std::uint64_t i = 0, n = below(m_max_nodes + 1); i < n; ++i) graph.nodes.push_back(node(graph));
        std::map<std::pair<std::uint32_t, std::uint32_t>, cachefmt::EdgeData> edges;
        for (std::uint64_t i = 0, n = graph.nodes.size() < 2 ? 0 : below(2 * graph.nodes.size()); i < n; ++i) {
            const auto from = static_cast<std::uint32_t>(below(graph.nodes.size() - 1));
            const auto to = static_cast<std::uint32_t>(from + 1 + below(graph.nodes.size() - from - 1));
            edges[{from, to}] = edge_data(graph.nodes[from], graph.nodes[to]);
        }
        for (const auto& [ends, data] : edges) graph.edges.push_back({ends.first, ends.second, data});
        return graph;
    }

    [[nodiscard]] cachefmt::Guards guards()
    {
        cachefmt::Guards guards;
        for (std::uint64_t i = 0, n = 1 + below(9); i < n; ++i)
            guards.facts.push_back(
                {"fact." + std::to_string(i), text(below(40)),
                 pick({cachefmt::Role::must_match, cachefmt::Role::identity, cachefmt::Role::advisory})});
        for (std::uint64_t i = 0, n = below(5); i < n; ++i) guards.tensors.push_back(tensor(i));
        for (std::uint64_t i = 0, n = below(3); i < n; ++i)
            guards.values.push_back({"value" + std::to_string(i), DType::u32, below(1ULL << 32)});
        return guards;
    }

    [[nodiscard]] cachefmt::Entry entry()
    {
        cachefmt::Entry entry;
        entry.graph = graph();
        entry.header.guards = guards();
        entry.header.key = {{"Model_static_clgraphcache_" + text(8), "world1global_rank0", "decode"},
                            cachefmt::guards_digest(entry.header.guards)};
        cachefmt::EntryInfo& info = entry.header.info;
        info = {.created = "2026-11-20T10:11:12Z",
                .created_by = "warmgraph 0.1.0",
                .record_ms = static_cast<double>(below(100'000)) / 7,
                .answer_ms = static_cast<double>(below(100'000)) / 9,
                .verification = "bitwise",
                .node_count = static_cast<std::uint32_t>(entry.graph.nodes.size()),
                .image_count = static_cast<std::uint32_t>(entry.graph.images.size()),
                .unproven = static_cast<std::uint32_t>(below(3)),
                .scalar_proofs = {},
                .library_constants = static_cast<std::uint32_t>(below(3)),
                .unused_words = static_cast<std::uint32_t>(below(3)),
                .compiled = {},
                .reason = "",
                .difference = {}};
        for (std::uint64_t i = 0, n = below(3); i < n; ++i) info.scalar_proofs.push_back(text(below(40)));
        for (std::uint64_t i = 0, n = below(3); i < n; ++i)
            info.compiled.push_back(
                {sha256(as_bytes(text(4))), static_cast<double>(below(100'000)) / 3, below(2) == 1});
        return entry;
    }

    [[nodiscard]] std::uint64_t below(std::uint64_t end)
    {
        return std::uniform_int_distribution<std::uint64_t>{0, end - 1}(m_engine);
    }

private:
    template <class T>
    T pick(std::initializer_list<T> choices)
    {
        return choices.begin()[below(choices.size())];
    }

    Bytes bytes(std::uint64_t size)
    {
        Bytes out(size);
        for (std::byte& byte : out) byte = static_cast<std::byte>(below(256));
        return out;
    }

    std::string text(std::uint64_t size)
    {
        std::string out(size, ' ');
        for (char& c : out) c = static_cast<char>('a' + below(26));
        return out;
    }

    Digest digest()
    {
        Digest out;
        for (std::byte& byte : out.bytes) byte = static_cast<std::byte>(below(256));
        return out;
    }

    cachefmt::Region region(std::uint64_t index)
    {
        using enum cachefmt::RegionKind;
        cachefmt::Region region{"region" + std::to_string(index),
                                pick({input, output, state, weights, arena, constant}),
                                64 + below(4096),
                                1U << below(9),
                                {},
                                pick({cachefmt::MemorySpace::device, cachefmt::MemorySpace::host})};
        if (region.kind == constant) region.contents = bytes(region.size);
        return region;
    }

    cachefmt::TensorSpec tensor(std::uint64_t index)
    {
        cachefmt::TensorSpec tensor{"tensor" + std::to_string(index),
                                    static_cast<DType>(below(k_dtype_count)),
                                    {},
                                    {},
                                    "opencl:0",
                                    1U << below(9),
                                    static_cast<std::uint32_t>(below(index + 1))};
        for (std::uint64_t i = 0, rank = below(cachefmt::k_max_rank + 1); i < rank; ++i) {
            tensor.sizes.push_back(static_cast<std::int64_t>(below(64)));
            tensor.strides.push_back(static_cast<std::int64_t>(below(4096)));
        }
        if (below(2) == 0) tensor.distance = static_cast<std::int64_t>(below(8192)) - 4096;
        return tensor;
    }

    cachefmt::Slot region_slot(const cachefmt::Graph& graph, std::uint32_t offset)
    {
        const auto target = static_cast<std::uint32_t>(below(graph.regions.size()));
        return {cachefmt::SlotKind::region, target, offset, 8,
                static_cast<std::int64_t>(below(graph.regions[target].size + 1))};
    }

    cachefmt::Slot scalar_slot(const cachefmt::Graph& graph, std::uint32_t offset)
    {
        const auto target = static_cast<std::uint32_t>(below(graph.scalars.size()));
        const DType type = graph.scalars[target].type;
        const std::int64_t addend = type == DType::f32 ? 0 : static_cast<std::int64_t>(below(100)) - 50;
        return {cachefmt::SlotKind::scalar, target, offset, static_cast<std::uint8_t>(size_of(type)), addend};
    }

    std::vector<cachefmt::ModuleVariable> variables()
    {
        std::vector<cachefmt::ModuleVariable> out;
        for (std::uint64_t i = 0, n = below(3); i < n; ++i)
            out.push_back({"variable" + std::to_string(i), bytes(1 + below(64))});
        return out;
    }

    cachefmt::EdgeData edge_data(const cachefmt::Node& from, const cachefmt::Node& to)
    {
        const auto is_kernel = [](const cachefmt::Node& node) {
            return std::holds_alternative<cachefmt::KernelNode>(node);
        };
        if (!is_kernel(from) || below(2) == 0) return {};
        const auto port = static_cast<std::uint8_t>(1 + below(2));
        return {port, 0, static_cast<std::uint8_t>(is_kernel(to) ? below(2) : 0)};
    }

    /// A slot for the address of a region. The address may be outside the region.
    cachefmt::Slot address_slot(const cachefmt::Graph& graph, std::uint32_t offset)
    {
        cachefmt::Slot slot = region_slot(graph, offset);
        if (below(4) == 0) slot.addend = static_cast<std::int64_t>(below(1ULL << 48)) - (1LL << 47);
        return slot;
    }

    cachefmt::Param value_param(const cachefmt::Graph& graph, std::uint64_t words)
    {
        cachefmt::Param out{cachefmt::ParamKind::value, bytes(4 * words), 0, {}};
        for (std::uint32_t offset = 0; offset + 8 <= out.value.size(); offset += 8) {
            if (below(2) == 0) continue;
            const cachefmt::Slot slot = below(2) == 0 ? address_slot(graph, offset) : scalar_slot(graph, offset);
            std::fill_n(out.value.begin() + offset, slot.width, std::byte{0});
            out.slots.push_back(slot);
        }
        return out;
    }

    cachefmt::Param param(const cachefmt::Graph& graph)
    {
        switch (below(4)) {
        case 0: return {cachefmt::ParamKind::memory, {}, 0, {region_slot(graph, 0)}};
        case 1: return {cachefmt::ParamKind::local, {}, 1 + below(1024), {}};
        default: break;
        }
        return value_param(graph, 1 + below(12));
    }

    std::vector<cachefmt::Attribute> attributes(const cachefmt::Graph& graph)
    {
        std::vector<cachefmt::Attribute> out;
        for (std::uint32_t id = 1; id < 15; ++id) {
            if (below(6) != 0) continue;
            cachefmt::Attribute attribute{id, bytes(1 + below(64)), {}};
            if (attribute.value.size() >= 8 && below(2) == 0) {
                attribute.slots.push_back(address_slot(graph, 0));
                std::fill_n(attribute.value.begin(), 8, std::byte{0});
            }
            out.push_back(std::move(attribute));
        }
        return out;
    }

    cachefmt::CopyNode copy(const cachefmt::Graph& graph)
    {
        const auto source = static_cast<std::uint32_t>(1 + below(graph.regions.size() - 1));
        cachefmt::CopyNode copy{
            {cachefmt::SlotKind::region, source, 0, 8, 0}, {cachefmt::SlotKind::region, 0, 0, 8, 0}, 64};
        if (below(2) == 0) { // a box within the 64 bytes that every region has
            copy.size = 4;
            copy.rows = 1 + below(2);
            copy.slices = 1 + below(2);
            copy.source_pitch = pick<cachefmt::Pitch>({{4, 8}, {8, 16}, {8, 32}});
            copy.destination_pitch = pick<cachefmt::Pitch>({{4, 8}, {8, 16}, {8, 32}});
        }
        if (below(2) == 0) copy.source_space = graph.regions[source].space;
        return copy;
    }

    cachefmt::MemoryOperationsNode operations()
    {
        using enum cachefmt::MemoryOperationKind;
        cachefmt::MemoryOperationsNode node;
        for (std::uint64_t i = 0, n = 1 + below(4); i < n; ++i) {
            const auto kind = pick({wait_32, write_32, flush_remote_writes, wait_64, write_64, barrier});
            cachefmt::MemoryOperation operation{kind, {}, 0, 0};
            if (kind == barrier || kind == write_32 || kind == write_64)
                operation.flags = static_cast<std::uint32_t>(below(2));
            if (kind == wait_32 || kind == wait_64)
                operation.flags = static_cast<std::uint32_t>(below(4) | below(2) << 30U);
            if (const std::uint32_t width = cachefmt::width_of(kind);
                width != 0) { // within the arena, which has at least 64 bytes
                operation.address = {cachefmt::SlotKind::region, 0, 0, 8, static_cast<std::int64_t>(width * below(8))};
                operation.value = below(1ULL << 32) << (width == 8 ? 8U : 0U);
            }
            node.operations.push_back(operation);
        }
        return node;
    }

    cachefmt::SemaphoresNode semaphores(const cachefmt::Graph& graph)
    {
        using enum cachefmt::SemaphoreAction;
        cachefmt::SemaphoresNode node{pick({signal, wait}), {}};
        for (std::uint64_t i = 0, n = 1 + below(4); i < n; ++i) {
            const auto scalar = static_cast<std::uint32_t>(below(graph.scalars.size()));
            const DType type = graph.scalars[scalar].type;
            cachefmt::SemaphoreUse use{static_cast<std::uint32_t>(below(graph.semaphores.size())),
                                       below(1ULL << 32) << 32U,
                                       {},
                                       static_cast<std::uint32_t>(below(2)) << (node.action == wait ? 1U : 0U)};
            if (type != DType::f32 && below(2) == 0) {
                use.slot =
                    cachefmt::Slot{cachefmt::SlotKind::scalar, scalar, 0, static_cast<std::uint8_t>(size_of(type)),
                                   static_cast<std::int64_t>(below(200)) - 100};
                if (use.slot->width == 8) use.value = 0;
            }
            node.uses.push_back(use);
        }
        return node;
    }

    cachefmt::Node node(const cachefmt::Graph& graph)
    {
        const std::uint64_t kind = below(14);
        if (kind == 0) return cachefmt::EmptyNode{};
        if (kind == 3) return cachefmt::HostNode{"host_" + text(5)};
        if (kind == 12) return operations();
        if (kind == 13 && !graph.semaphores.empty()) return semaphores(graph);
        if (kind <= 5 && !graph.events.empty()) {
            const auto event = static_cast<std::uint32_t>(below(graph.events.size()));
            if (kind == 4) return cachefmt::EventRecordNode{event};
            if (kind == 5) return cachefmt::EventWaitNode{event};
        }
        if (kind == 1) {
            const auto pattern = bytes(std::uint64_t{1} << below(5));
            cachefmt::FillNode fill{{cachefmt::SlotKind::region, 0, 0, 8, 16}, pattern, pattern.size()};
            if (below(2) == 0) fill.rows = 2, fill.pitch = 16 + below(16);
            return fill;
        }
        if (kind == 2) return copy(graph);
        return kernel(graph);
    }

    cachefmt::KernelNode kernel(const cachefmt::Graph& graph)
    {
        cachefmt::KernelNode kernel{
            static_cast<std::uint32_t>(below(graph.images.size())), "kernel_" + text(6), {}, {}, {}};
        for (std::size_t i = 0; i < 3; ++i) {
            kernel.grid[i] = static_cast<std::uint32_t>(1 + below(64));
            kernel.block[i] = static_cast<std::uint32_t>(1 + below(16));
        }
        kernel.shared_bytes = static_cast<std::uint32_t>(below(2) * below(232'449));
        kernel.attributes = attributes(graph);
        for (std::uint32_t id = 0; id < 16; ++id)
            if (below(8) == 0) kernel.function_attributes.push_back({id, static_cast<std::int32_t>(below(1000)) - 500});
        kernel.packed = below(4) == 0;
        if (kernel.packed)
            kernel.params.push_back(value_param(graph, 1 + below(300)));
        else
            for (std::uint64_t i = 0, n = below(6); i < n; ++i) kernel.params.push_back(param(graph));
        return kernel;
    }

    std::mt19937_64 m_engine;
    std::size_t m_max_nodes;
};

} // namespace warmgraph::test
