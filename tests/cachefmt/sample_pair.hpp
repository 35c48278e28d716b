// The two entries of a small pair, forward and backward.
#pragma once

#include <string>
#include <vector>

#include "sample_entry.hpp"

namespace warmgraph::cachefmt::test {

inline Slot scalar_slot(std::uint32_t target) { return {SlotKind::scalar, target, 0, 4, 0}; }

inline void give_key(Entry& entry)
{
    entry.header.key = {{"Toy_static_clgraphcache_1a2b3c4d5e6f", "world1global_rank0", "step"},
                        guards_digest(entry.header.guards)};
    entry.header.info.node_count = static_cast<std::uint32_t>(entry.graph.nodes.size());
    entry.header.info.image_count = static_cast<std::uint32_t>(entry.graph.images.size());
}

inline Guards guards_of(const std::vector<std::string>& tensors)
{
    Guards guards;
    guards.facts = {{"driver.version", "3.1"}, {k_saved_fact, "h f32 [4]"}, {"rank", "r", Role::identity}};
    for (const auto& name : tensors)
        guards.tensors.push_back(
            {name, DType::f32, {4}, {1}, "opencl:0", 256, static_cast<std::uint32_t>(guards.tensors.size())});
    return guards;
}

inline KernelNode kernel(std::uint32_t image, const std::string& name, const std::vector<Slot>& slots)
{
    KernelNode node{image, name, {1, 1, 1}, {4, 1, 1}, {}};
    for (const Slot& slot : slots)
        node.params.push_back(slot.kind == SlotKind::region ? Param{ParamKind::memory, {}, 0, {slot}}
                                                            : Param{ParamKind::value, Bytes(4), 0, {slot}});
    return node;
}

inline Entry forward_entry(const RecordingId& id = {1, 2})
{
    Entry entry;
    entry.header.recording = RecordingPart{id, Part::forward};
    entry.header.guards = guards_of({"x", "y", "h", "w"});
    entry.header.guards.tensors[3].alias_group = 0; // w and x overlap
    entry.header.guards.values = {{"mode", DType::i32, 1}};
    entry.graph.regions = {
        {"x", RegionKind::input, 16, 64, {}},        {"y", RegionKind::output, 16, 64, {}},
        {"h", RegionKind::output, 16, 64, {}},       {"w", RegionKind::weights, 16, 4, {}},
        {"scratch", RegionKind::arena, 64, 256, {}}, {"table", RegionKind::constant, 8, 8, Bytes(8, std::byte{3})}};
    entry.graph.scalars = {{"scale", DType::f32}};
    entry.graph.images = {{digest_of(1), 100, {}, "one"}, {digest_of(2), 200, {}, "two"}};
    entry.graph.nodes = {FillNode{region_slot(4), Bytes(4), 64},
                         kernel(1, "f", {region_slot(0), region_slot(3), region_slot(2), scalar_slot(0)}),
                         kernel(0, "g", {region_slot(2), region_slot(5), region_slot(1)})};
    entry.graph.edges = {{0, 1}, {1, 2}};
    entry.header.info.scalar_proofs = {"scale: sampled"};
    entry.header.info.answer_ms = 5;
    give_key(entry);
    return entry;
}

inline Entry backward_entry(const RecordingId& id = {1, 2})
{
    Entry entry;
    entry.header.recording = RecordingPart{id, Part::backward};
    entry.header.guards = guards_of({"dy", "x", "h", "dx"});
    entry.header.guards.tensors[3].alias_group = 0; // works in place
    entry.header.guards.values = {{"pair.recording.high", DType::u64, id.high},
                                  {"pair.recording.low", DType::u64, id.low}};
    entry.graph.regions = {{"dy", RegionKind::input, 16, 64, {}},
                           {"x", RegionKind::input, 16, 64, {}},
                           {"h", RegionKind::input, 16, 256, {}},
                           {"dx", RegionKind::output, 16, 64, {}},
                           {"scratch", RegionKind::arena, 32, 256, {}}};
    entry.graph.scalars = {{"scale", DType::f32}};
    entry.graph.images = {{digest_of(2), 200, {}, "two"}};
    entry.graph.nodes = {kernel(0, "b", {region_slot(0), region_slot(2), region_slot(4), scalar_slot(0)}),
                         CopyNode{region_slot(4), region_slot(3), 16}};
    entry.graph.edges = {{0, 1}};
    entry.header.info.answer_ms = 7;
    give_key(entry);
    return entry;
}

} // namespace warmgraph::cachefmt::test
