#include "expect_error.hpp"
#include "random_graph.hpp"
#include "sample_pair.hpp"
#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph::cachefmt::test::round_trip_test {
namespace {

using warmgraph::test::RandomEntry;
using warmgraph::test::test_seed;

TEST(RoundTrip, GivesBackEverything)
{
    const Entry entry = sample_entry();
    const auto bytes = take(encode(entry));
    const auto back = take(decode(bytes, entry.header.key));
    EXPECT_TRUE(back == entry);
}

TEST(RoundTrip, GivesBackEverythingThatCudaAdds)
{
    const Entry entry = sample_cuda_entry();
    for (const std::uint64_t compress_above : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
        const auto bytes = take(encode(entry, {.compress_above = compress_above}));
        const auto back = take(decode(bytes, entry.header.key));
        EXPECT_TRUE(back == entry);
        EXPECT_EQ(graph_digest(back.graph), graph_digest(entry.graph));
    }
}

TEST(RoundTrip, GivesBackWhichRecordingAnEntryIsOf)
{
    const RecordingId id = new_recording_id();
    EXPECT_NE(id, new_recording_id());
    for (const Entry& entry : {forward_entry(id), backward_entry(id)}) {
        const auto bytes = take(encode(entry));
        const auto back = take(decode_header(bytes, entry.header.key));
        EXPECT_EQ(back.recording, entry.header.recording);
        EXPECT_TRUE(succeeded(check_not_joined(back)));
    }
    Entry entry = forward_entry();
    entry.header.recording.reset();
    EXPECT_TRUE(failed_with(check_not_joined(entry.header), ErrorCode::stale, "in one graph"));
}

TEST(RoundTrip, GivesBackATombstone)
{
    const Entry entry = sample_tombstone();
    const auto bytes = take(encode(entry));
    const auto back = take(decode(bytes, entry.header.key));
    EXPECT_TRUE(back == entry);
}

TEST(RoundTrip, HoldsForRandomEntriesCompressedOrNot)
{
    const std::uint64_t seed = test_seed();
    for (std::uint64_t round = 0; round < 300; ++round) {
        SCOPED_TRACE("WARMGRAPH_TEST_SEED=" + std::to_string(seed + round));
        const Entry entry = RandomEntry{seed + round}.entry();
        ASSERT_TRUE(succeeded(validate(entry.graph)));
        for (const std::uint64_t compress_above : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
            const auto bytes = take(encode(entry, {.compress_above = compress_above}));
            const auto back = take(decode(bytes, entry.header.key));
            ASSERT_TRUE(back == entry);
            ASSERT_EQ(graph_digest(back.graph), graph_digest(entry.graph));
        }
    }
}

TEST(RoundTrip, WorksFromBytesAtAnyAddress)
{
    const Entry entry = sample_entry();
    const auto bytes = take(encode(entry));
    for (std::size_t shift = 1; shift < 8; ++shift) {
        Bytes shifted(shift);
        append(shifted, ByteView{bytes});
        EXPECT_TRUE(succeeded(decode(ByteView{shifted}.subspan(shift), entry.header.key))) << shift;
    }
}

TEST(Encode, GivesEqualBytesForEqualEntries)
{
    const std::uint64_t seed = test_seed();
    for (const std::uint64_t compress_above : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
        const auto one = encode(RandomEntry{seed}.entry(), {.compress_above = compress_above});
        const auto two = encode(RandomEntry{seed}.entry(), {.compress_above = compress_above});
        ASSERT_TRUE(succeeded(one));
        ASSERT_TRUE(succeeded(two));
        EXPECT_EQ(*one, *two);
    }
}

TEST(Encode, CompressesAboveTheThresholdOnly)
{
    Entry entry = sample_entry();
    entry.graph.regions[5] = {"table", RegionKind::constant, 100'000, 16, Bytes(100'000)};
    settle(entry);
    const auto compressed = encode(entry);
    const auto plain = encode(entry, {.compress_above = 1 << 20});
    ASSERT_TRUE(succeeded(compressed));
    ASSERT_TRUE(succeeded(plain));
    EXPECT_LT(compressed->size(), 5'000U);
    EXPECT_GT(plain->size(), 100'000U);
    EXPECT_EQ(load<std::uint32_t>(*compressed, 40), 1U);
    EXPECT_EQ(load<std::uint32_t>(*plain, 40), 0U);
}

TEST(Encode, KeepsConstantsThatAreStoredElsewhereAndVariablesThatHoldTheirAddresses)
{
    Entry entry = sample_cuda_entry();
    entry.graph.regions[5].contents = {};
    entry.graph.regions[5].digest = sha256(Bytes(16));
    auto& variable = entry.graph.images[1].variables[1];
    variable.contents.resize(16);
    variable.slots = {{SlotKind::region, 5, 8, 8, 4}};
    settle(entry);
    const auto bytes = take(encode(entry));
    const auto decoded = take(decode(bytes, entry.header.key));
    EXPECT_EQ(decoded.graph, entry.graph);
    auto blobs = blobs_of(decoded.graph);
    EXPECT_EQ(blobs.back(), entry.graph.regions[5].digest);

    const Digest before = graph_digest(entry.graph);
    entry.graph.regions[5].digest = sha256(Bytes(17));
    EXPECT_NE(graph_digest(entry.graph), before) << "other contents are another graph";
    entry.graph = decoded.graph;
    entry.graph.images[1].variables[1].slots[0].addend = 0;
    EXPECT_NE(graph_digest(entry.graph), before);
}

TEST(Encode, StoresZerosUnderSlots)
{
    Entry entry = sample_entry();
    const auto expected = encode(entry);
    auto& kernel = std::get<KernelNode>(entry.graph.nodes[1]);
    kernel.params[1].value.assign(4, std::byte{17}); // the position that the recorded call had
    const auto bytes = encode(entry);
    ASSERT_TRUE(succeeded(expected));
    ASSERT_TRUE(succeeded(bytes));
    EXPECT_EQ(*bytes, *expected);
}

TEST(Encode, StoresZerosUnderSlotsOfAttributes)
{
    Entry entry = sample_cuda_entry();
    const auto expected = encode(entry);
    auto& value = std::get<KernelNode>(entry.graph.nodes[6]).attributes[0].value;
    std::fill_n(value.begin(), 8, std::byte{17}); // the address of the window in the recording process
    const auto bytes = encode(entry);
    ASSERT_TRUE(succeeded(expected));
    ASSERT_TRUE(succeeded(bytes));
    EXPECT_EQ(*bytes, *expected);
}

TEST(Encode, RefusesWhatItCouldNotReadBack)
{
    Entry cycle = sample_entry();
    cycle.graph.edges[0] = {1, 0};
    EXPECT_TRUE(failed_with(encode(cycle), ErrorCode::internal, "does not go from a lower to a higher node"));
    Entry key = sample_entry();
    key.header.key.guards_digest = digest_of(9);
    EXPECT_TRUE(failed_with(encode(key), ErrorCode::internal, "key has guards digest"));
    Entry counts = sample_entry();
    counts.header.info.node_count = 1;
    EXPECT_TRUE(failed_with(encode(counts), ErrorCode::internal, "header says 1 nodes, the graph has 5"));
    Entry unsorted = sample_entry();
    std::swap(unsorted.header.guards.facts[0], unsorted.header.guards.facts[1]);
    settle(unsorted);
    EXPECT_TRUE(failed_with(encode(unsorted), ErrorCode::internal, "facts are sorted by name"));
}

TEST(DecodeHeader, NeedsNoByteOfThePayload)
{
    const Entry entry = sample_entry();
    auto bytes = take(encode(entry));
    const auto extent = take(header_extent(ByteView{bytes}.first(k_envelope_bytes)));
    ASSERT_LT(extent, bytes.size());
    const auto header = take(decode_header(ByteView{bytes}.first(extent), entry.header.key));
    EXPECT_TRUE(header == entry.header);
    bytes.back() ^= std::byte{1};
    EXPECT_TRUE(succeeded(decode_header(bytes, entry.header.key)));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key), ErrorCode::corrupt, "payload digest does not match"));
}

} // namespace
} // namespace warmgraph::cachefmt::test::round_trip_test
