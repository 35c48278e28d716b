// Two small entries that together use every part of the format: one as OpenCL makes it, and one with CUDA's additions.
#pragma once

#include "reseal.hpp"
#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt::test {

inline Digest digest_of(unsigned char fill)
{
    Digest digest;
    digest.bytes.fill(std::byte{fill});
    return digest;
}

inline Slot region_slot(std::uint32_t target, std::int64_t addend = 0, std::uint32_t offset = 0)
{
    return {SlotKind::region, target, offset, 8, addend};
}

inline Graph sample_graph()
{
    Graph graph;
    graph.regions = {{"token", RegionKind::input, 4, 4, {}},
                     {"logits", RegionKind::output, 1024, 64, {}},
                     {"kv", RegionKind::state, 65536, 256, {}},
                     {"w", RegionKind::weights, 4096, 64, {}},
                     {"scratch", RegionKind::arena, 8192, 256, {}},
                     {"table", RegionKind::constant, 16, 16, Bytes(16, std::byte{7})}};
    graph.scalars = {{"position", DType::i32}, {"scale", DType::f32}, {"step", DType::u64}};
    graph.images = {{digest_of(1), 4000, digest_of(2), "llm"}, {digest_of(3), 300, {}, "aux"}};
    KernelNode rope{0, "rope", {4, 1, 1}, {64, 1, 1}, {}};
    rope.params = {{ParamKind::memory, {}, 0, {region_slot(2, 1024)}},
                   {ParamKind::value, Bytes(4), 0, {{SlotKind::scalar, 0, 0, 4, 1}}},
                   {ParamKind::local, {}, 128, {}},
                   {ParamKind::value,
                    Bytes(24, std::byte{0}),
                    0,
                    {region_slot(4, 64, 0), {SlotKind::scalar, 1, 8, 4, 0}, {SlotKind::scalar, 2, 16, 8, -1}}},
                   {ParamKind::value, Bytes(3, std::byte{9}), 0, {}}};
    rope.params[3].value[12] = std::byte{42};
    graph.nodes = {FillNode{region_slot(4), Bytes(4, std::byte{1}), 256}, rope,
                   CopyNode{region_slot(4, 512), region_slot(1), 1024}, EmptyNode{},
                   KernelNode{1, "finish", {1, 1, 1}, {1, 1, 1}, {}}};
    graph.edges = {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}};
    return graph;
}

inline Bytes words(std::initializer_list<std::int32_t> numbers)
{
    Bytes bytes;
    for (const std::int32_t number : numbers) append(bytes, std::as_bytes(std::span{&number, 1}));
    return bytes;
}

inline Graph sample_cuda_graph()
{
    Graph graph = sample_graph();
    graph.regions.push_back({"staging", RegionKind::state, 4096, 64, {}, MemorySpace::host});
    graph.images[1].variables = {{"_ZN3llm4biasE", Bytes(8, std::byte{5})}, {"lut", Bytes(4, std::byte{6})}};
    graph.events = {"ready", "done"};
    KernelNode gemm{1, "nvjet_gemm", {2, 1, 1}, {128, 1, 1}, {}};
    gemm.params = {{ParamKind::value, Bytes(32), 0, {region_slot(2, -256, 8), region_slot(3, 1 << 20, 24)}}};
    gemm.params[0].value[0] = std::byte{3};
    gemm.shared_bytes = 232'448; // 227 KiB, Hopper's limit
    gemm.packed = true;
    gemm.attributes = {{1, Bytes(32), {region_slot(3)}}, {4, words({2, 1, 1}), {}}, {8, words({-5}), {}}};
    gemm.attributes[0].value[8] = std::byte{64};
    gemm.function_attributes = {{8, 232'448}, {14, 1}};
    KernelNode tail{0, "tail", {1, 1, 1}, {32, 1, 1}, {}};
    tail.attributes = {{6, words({1}), {}}};
    CopyNode copy{region_slot(6), region_slot(2), 64};
    copy.rows = 4, copy.slices = 2;
    copy.source_pitch = {64, 256}, copy.destination_pitch = {128, 1024};
    copy.source_space = MemorySpace::host;
    FillNode fill{region_slot(4), Bytes(4, std::byte{2}), 32};
    fill.rows = 3, fill.pitch = 64;
    MemoryOperationsNode batch{{{MemoryOperationKind::wait_32, region_slot(2, 8), 1, 1U << 30},
                                {MemoryOperationKind::write_64, region_slot(6, 4088), 1ULL << 40, 0},
                                {MemoryOperationKind::barrier, {}, 0, 1}}};
    graph.semaphores = {"frame", "shown"};
    const SemaphoresNode wait{SemaphoreAction::wait, {{1, 7, {}, 2}}};
    const SemaphoresNode signal{
        SemaphoreAction::signal,
        {{0, 0, Slot{SlotKind::scalar, 2, 0, 8, 1}, 0}, {1, 5ULL << 32, Slot{SlotKind::scalar, 0, 0, 4, -1}, 1}}};
    for (Node node : std::vector<Node>{EventWaitNode{0}, gemm, tail, copy, fill, HostNode{"log_step"},
                                       EventRecordNode{1}, batch, wait, signal})
        graph.nodes.push_back(std::move(node));
    for (const Edge& edge : std::vector<Edge>{{4, 5},
                                              {5, 6},
                                              {6, 7, {1, 0, 1}},
                                              {6, 8, {2, 0, 0}},
                                              {7, 8},
                                              {8, 9},
                                              {9, 10},
                                              {10, 11},
                                              {11, 12},
                                              {12, 13},
                                              {13, 14}})
        graph.edges.push_back(edge);
    return graph;
}

inline Guards sample_guards()
{
    Guards guards;
    guards.facts = {{"code.id", "abc123", Role::must_match},
                    {"device.name", "pthread-cpu", Role::advisory},
                    {"driver.version", "3.1", Role::must_match},
                    {"env.OMP_NUM_THREADS", k_unknown, Role::must_match},
                    {"model", "tiny", Role::identity}};
    guards.tensors = {{"token", DType::i32, {1}, {1}, "opencl:0", 4, 0},
                      {"logits", DType::f32, {2, 128}, {256, 1}, "opencl:0", 64, 1, 0},
                      {"view", DType::f32, {128}, {1}, "opencl:0", 64, 1, 256}};
    guards.values = {
        {"temperature", DType::f32, 0x3F000000}, {"greedy", DType::boolean, 1}, {"shift", DType::i8, 0xFF}};
    return guards;
}

/// Sets the key and the counts so that they agree with the entry's contents.
inline void settle(Entry& entry)
{
    entry.header.key.guards_digest = guards_digest(entry.header.guards);
    entry.header.info.node_count = static_cast<std::uint32_t>(entry.graph.nodes.size());
    entry.header.info.image_count = static_cast<std::uint32_t>(entry.graph.images.size());
}

inline Entry sample_entry()
{
    Entry entry;
    entry.header.key.function = {"TinyLlama_static_clgraphcache_1a2b3c4d", "world1global_rank0", "decode"};
    entry.header.guards = sample_guards();
    entry.header.info = {
        .created = "2026-11-20T10:11:12Z",
        .created_by = "warmgraph 0.1.0",
        .record_ms = 1961.75,
        .answer_ms = 812.5,
        .verification = "bitwise",
        .scalar_proofs = {"position: proven at all 2,048 values", "scale: sampled at 412 values"},
        .reason = "",
        .difference = {},
    };
    entry.graph = sample_graph();
    settle(entry);
    return entry;
}

inline Entry sample_cuda_entry()
{
    Entry entry = sample_entry();
    entry.header.key.function.model_info = "TinyLlama_static_cudagraphcache_1a2b3c4d";
    entry.header.info.unproven = 3;
    entry.header.info.library_constants = 2;
    entry.header.info.unused_words = 4;
    entry.graph = sample_cuda_graph();
    settle(entry);
    return entry;
}

inline Entry sample_tombstone()
{
    Entry entry = sample_entry();
    entry.header.kind = EntryKind::tombstone;
    entry.header.info.reason = "recompiled";
    entry.header.info.difference = {"kernel rope (node 3): grid 4,1,1 against 8,1,1"};
    entry.graph = {};
    return entry;
}

/// The bytes of an entry file with this header and payload, and with matching digests, as a hostile writer could make
/// it.
inline Bytes assemble(const EntryKey& key, ByteView header, ByteView payload, std::uint64_t raw_size,
                      std::uint32_t compression = 0, EntryKind kind = EntryKind::graph)
{
    namespace at = warmgraph::test::envelope_at;
    using warmgraph::test::poke;
    Bytes bytes(at::end);
    const std::string_view magic{"\x89WGENT\r\n"};
    std::memcpy(bytes.data(), magic.data(), magic.size());
    poke(bytes, at::version, k_format_version);
    poke(bytes, at::kind, static_cast<std::uint32_t>(kind));
    poke(bytes, at::header_size, std::uint64_t{header.size()});
    poke(bytes, at::payload_stored, std::uint64_t{payload.size()});
    poke(bytes, at::payload_raw, raw_size);
    poke(bytes, at::compression, compression);
    append(bytes, header);
    append(bytes, payload);
    warmgraph::test::reseal(bytes, key);
    return bytes;
}

} // namespace warmgraph::cachefmt::test
