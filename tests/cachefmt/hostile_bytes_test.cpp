// Promise F4: flatbuffers that this library never writes, sealed with matching digests.
#include <algorithm>
#include <array>
#include <random>

#include <entry_generated.h>

#include "expect_error.hpp"
#include "flat_writer.hpp"
#include "random_graph.hpp"
#include "sample_entry.hpp"

namespace warmgraph::cachefmt::test::hostile_bytes_test {
namespace {

using flatbuffers::FlatBufferBuilder;
using warmgraph::test::RandomEntry;
using warmgraph::test::test_seed;

class HostileBytes : public testing::Test {
protected:
    Result<Entry> decode_payload(ByteView hostile)
    {
        return decode(assemble(entry.header.key, header, hostile, hostile.size()), entry.header.key);
    }
    Result<Entry> decode_payload(const FlatBufferBuilder& builder)
    {
        return decode_payload(std::as_bytes(std::span{builder.GetBufferPointer(), builder.GetSize()}));
    }
    const Entry entry = sample_entry();
    const Bytes header = write_header(entry.header);
    const Bytes payload = write_payload(entry.graph);
};

TEST_F(HostileBytes, OfNoFlatbufferAreRefused)
{
    const std::string message = "is not a valid flatbuffer";
    EXPECT_TRUE(failed_with(decode_payload(Bytes(64)), ErrorCode::corrupt, message));
    EXPECT_TRUE(failed_with(decode_payload(Bytes(64, std::byte{0xFF})), ErrorCode::corrupt, message));
    const Bytes bytes = assemble(entry.header.key, Bytes(64, std::byte{0x7F}), payload, payload.size());
    EXPECT_TRUE(failed_with(decode_header(bytes, entry.header.key), ErrorCode::corrupt, message));
}

TEST_F(HostileBytes, WithTheTwoFlatbuffersExchangedAreRefused)
{
    EXPECT_TRUE(failed_with(decode_payload(header), ErrorCode::corrupt, "payload of"));
    const Bytes bytes = assemble(entry.header.key, payload, header, header.size());
    EXPECT_TRUE(failed_with(decode_header(bytes, entry.header.key), ErrorCode::corrupt, "header of"));
}

TEST_F(HostileBytes, WithANodeOfUnknownKindAreRefused)
{
    FlatBufferBuilder builder;
    const auto target = flat::CreateSlot(builder);
    const auto node = flat::CreateNode(builder, static_cast<flat::Work>(9), target.Union());
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node})), "WGPL");
    EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, "node 0: kind 9 is unknown"));
}

TEST_F(HostileBytes, WithANodeWithoutItsTableAreRefused)
{
    FlatBufferBuilder builder;
    const auto node = flat::CreateNode(builder, flat::Work::Kernel, 0);
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node})), "WGPL");
    EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, "node 0: its Kernel is missing"));
}

TEST_F(HostileBytes, WithTooManyOperationsInANodeAreRefused)
{
    FlatBufferBuilder builder;
    const auto operations = builder.CreateVector(std::vector(257, flat::CreateMemoryOperation(builder)));
    const auto batch = flat::CreateMemoryOperations(builder, operations);
    const auto node = flat::CreateNode(builder, flat::Work::MemoryOperations, batch.Union());
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node})), "WGPL");
    EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, "node 0: 257 operations are over the limit"));
}

TEST_F(HostileBytes, WithTooManySemaphoresInANodeAreRefused)
{
    FlatBufferBuilder builder;
    const auto uses = builder.CreateVector(std::vector(257, flat::CreateSemaphoreUse(builder)));
    const auto semaphores = flat::CreateSemaphores(builder, flat::SemaphoreAction::wait, uses);
    const auto node = flat::CreateNode(builder, flat::Work::Semaphores, semaphores.Union());
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node})), "WGPL");
    EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, "node 0: 257 semaphores are over the limit"));
}

TEST_F(HostileBytes, WithEdgeDataThatFitsNoEdgeAreRefused)
{
    struct Fault {
        std::vector<flat::EdgeData> data;
        const char* message;
    };
    for (const Fault& fault : {Fault{{{1, 1, 0, 1}}, "edge data 0: edge 1 is out of range, the graph has 1"},
                               Fault{{{~0U, 1, 0, 1}}, "edge data 0: edge 4294967295 is out of range"},
                               Fault{{{0, 1, 0, 1}, {0, 2, 0, 1}}, "edge data 1: edge 0 is repeated or out of order"},
                               Fault{{{0, 0, 0, 0}}, "edge data 0: it has only default values for edge 0"}}) {
        FlatBufferBuilder builder;
        const auto node = flat::CreateNode(builder);
        const auto nodes = builder.CreateVector(std::vector{node, node});
        const std::vector<flat::Edge> one_edge{{0, 1}};
        const auto edges = builder.CreateVectorOfStructs(one_edge);
        const auto data = builder.CreateVectorOfStructs(fault.data);
        builder.Finish(flat::CreatePayload(builder, 0, 0, 0, nodes, edges, 0, data), "WGPL");
        EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, fault.message));
    }
}

TEST_F(HostileBytes, WithTooManyAttributesAreRefusedBeforeTheyAreCopied)
{
    FlatBufferBuilder builder;
    const auto attribute = flat::CreateAttribute(builder);
    const auto attributes = builder.CreateVector(std::vector(65, attribute));
    const flat::Dim3 one{1, 1, 1};
    const auto kernel = flat::CreateKernel(builder, 0, builder.CreateString("k"), &one, &one, 0, 0, false, attributes);
    const auto node = flat::CreateNode(builder, flat::Work::Kernel, kernel.Union());
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node})), "WGPL");
    EXPECT_TRUE(
        failed_with(decode_payload(builder), ErrorCode::corrupt, "node 0: 65 attributes are over the limit of 64"));
}

TEST_F(HostileBytes, WithAHostNodeWithoutAFunctionAreRefused)
{
    FlatBufferBuilder builder;
    const auto start = builder.StartTable();
    const flatbuffers::Offset<flat::Host> host{builder.EndTable(start)};
    const auto node = flat::CreateNode(builder, flat::Work::Host, host.Union());
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node})), "WGPL");
    EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, "is not a valid flatbuffer"));
}

TEST_F(HostileBytes, WithAMillionNodesAreRefused)
{
    FlatBufferBuilder builder;
    const auto node = flat::CreateNode(builder);
    const auto nodes = builder.CreateVector(std::vector(1'000'000, node));
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, nodes), "WGPL");
    EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, "1000000 nodes are over the limit of 200000"));
}

TEST_F(HostileBytes, WithOneKernelSharedByManyNodesAreRefused)
{
    FlatBufferBuilder builder;
    const auto slot = flat::CreateSlot(builder);
    const auto param =
        flat::CreateParam(builder, flat::ParamKind::value, 0, 0, builder.CreateVector(std::vector(1000, slot)));
    const auto params = builder.CreateVector(std::vector(4000, param));
    const flat::Dim3 one{1, 1, 1};
    const auto kernel = flat::CreateKernel(builder, 0, builder.CreateString("k"), &one, &one, params);
    const auto node = flat::CreateNode(builder, flat::Work::Kernel, kernel.Union());
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector(10'000, node))), "WGPL");
    EXPECT_TRUE(
        failed_with(decode_payload(builder), ErrorCode::corrupt, "is not a valid flatbuffer")); // too many tables
}

TEST_F(HostileBytes, WithoutRequiredFieldsAreRefused)
{
    FlatBufferBuilder builder;
    const auto start = builder.StartTable(); // makes a kernel node without name, grid and block
    const flatbuffers::Offset<flat::Kernel> kernel{builder.EndTable(start)};
    const auto node = flat::CreateNode(builder, flat::Work::Kernel, kernel.Union());
    builder.Finish(flat::CreatePayload(builder, 0, 0, 0, builder.CreateVector(std::vector{node})), "WGPL");
    EXPECT_TRUE(failed_with(decode_payload(builder), ErrorCode::corrupt, "is not a valid flatbuffer"));
}

TEST_F(HostileBytes, WithSizesOffTheirAlignmentAreReadWithoutAMisalignedLoad)
{
    // The verifier accepts these bytes, because it only checks the alignment of a vector's length. UBSan checks that
    // the elements are loaded safely.
    EntryHeader tensors = entry.header;
    tensors.guards.tensors = {{"only", DType::u8, {0x0A0B0C0D, 5}, {1, 1}, "d", 1, 0}};
    Bytes bytes = write_header(tensors);
    // The vector (length 2, then two sizes) is moved by 4 bytes, so that its elements are aligned to 4 bytes instead of
    // 8.
    const std::array<std::uint8_t, 20> vector{2, 0, 0, 0, 0x0D, 0x0C, 0x0B, 0x0A, 0, 0, 0, 0, 5};
    const auto found = std::search(bytes.begin(), bytes.end(), reinterpret_cast<const std::byte*>(vector.data()),
                                   reinterpret_cast<const std::byte*>(vector.data()) + vector.size());
    ASSERT_NE(found, bytes.end());
    const auto start = static_cast<std::uint32_t>(found - bytes.begin());
    ASSERT_EQ((start + 4) % 8, 0U);
    for (std::uint32_t at = 0; at + 4 <= start; at += 4) {
        if (at + load<std::uint32_t>(bytes, at) != start) continue; // looks for the offset that points to the vector
        warmgraph::test::poke(bytes, at,
                              load<std::uint32_t>(bytes, at) + 4); // the lower half of size 0 now counts as the length
        warmgraph::test::poke(bytes, start + 4, std::uint32_t{1});
        const Bytes sealed = assemble(entry.header.key, bytes, payload, payload.size());
        EXPECT_TRUE(failed_with(decode_header(sealed, entry.header.key), ErrorCode::corrupt, "1 sizes and 2 strides"));
        return;
    }
    FAIL() << "the vector's offset was not found";
}

TEST_F(HostileBytes, OfATombstoneWithAPayloadAreRefused)
{
    const Entry tombstone = sample_tombstone();
    const Bytes bytes = assemble(tombstone.header.key, write_header(tombstone.header), payload, payload.size(), 0,
                                 EntryKind::tombstone);
    EXPECT_TRUE(failed_with(decode(bytes, tombstone.header.key), ErrorCode::corrupt, "a tombstone has no payload"));
}

TEST_F(HostileBytes, OfAGraphWithoutAPayloadAreRefused)
{
    const Bytes bytes = assemble(entry.header.key, header, {}, 0);
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key), ErrorCode::corrupt, "payload of 0 bytes is too small"));
}

TEST_F(HostileBytes, MutatedAnywhereAreRefusedOrMeanSomething)
{
    const std::uint64_t seed = test_seed();
    std::mt19937_64 engine{seed};
    const auto below = [&](std::uint64_t end) {
        return std::uniform_int_distribution<std::uint64_t>{0, end - 1}(engine);
    };
    std::size_t accepted = 0, refused = 0;
    for (int round = 0; round < 20'000; ++round) {
        const bool in_header = round % 3 == 0;
        Bytes changed = in_header ? header : payload;
        for (std::uint64_t i = 0, n = 1 + below(4); i < n; ++i)
            changed[below(changed.size())] = static_cast<std::byte>(below(256));
        const Bytes bytes = in_header ? assemble(entry.header.key, changed, payload, payload.size())
                                      : assemble(entry.header.key, header, changed, changed.size());
        const auto decoded = decode(bytes, entry.header.key);
        if (!decoded) {
            ASSERT_EQ(decoded.error().code, ErrorCode::corrupt) << decoded.error().message;
            ASSERT_FALSE(decoded.error().message.empty());
            ++refused;
            continue;
        }
        ++accepted;
        ASSERT_TRUE(validate(decoded->graph).has_value());
        ASSERT_EQ(guards_digest(decoded->header.guards), entry.header.key.guards_digest);
        ASSERT_TRUE(encode(*decoded).has_value()) << "WARMGRAPH_TEST_SEED=" << seed << " round " << round;
    }
    EXPECT_GT(refused, 5'000U);
    EXPECT_GT(accepted, 500U);
}

} // namespace
} // namespace warmgraph::cachefmt::test::hostile_bytes_test
