// Promise F4: headers with matching digests whose guards or counts make no sense.
#include <cmath>
#include <functional>
#include <limits>

#include "expect_error.hpp"
#include "flat_writer.hpp"
#include "sample_entry.hpp"

namespace warmgraph::cachefmt::test::hostile_header_test {
namespace {

struct Hostile {
    const char* name;
    std::function<void(Entry&)> spoil;
    const char* message;
    friend std::ostream& operator<<(std::ostream& out, const Hostile& hostile) { return out << hostile.name; }
};

TensorSpec& tensor(Entry& entry) { return entry.header.guards.tensors[1]; }

const std::vector<Hostile>& hostile_headers()
{
    static const std::vector<Hostile> k_headers{
        {"FactTwice", [](Entry& e) { e.header.guards.facts[1].name = "code.id"; },
         "fact 'code.id' is repeated or out of order"},
        {"FactsUnsorted", [](Entry& e) { std::swap(e.header.guards.facts[0], e.header.guards.facts[1]); },
         "fact 'code.id' is repeated or out of order"},
        {"FactWithoutName", [](Entry& e) { e.header.guards.facts[0].name = ""; }, "fact 0 has no name"},
        {"FactRole", [](Entry& e) { e.header.guards.facts[0].role = static_cast<Role>(3); },
         "fact 'code.id': role 3 is unknown"},
        {"TensorDType", [](Entry& e) { tensor(e).dtype = static_cast<DType>(13); },
         "guard of tensor 1 'logits': dtype 13 is unknown"},
        {"TensorRank", [](Entry& e) { tensor(e).sizes = tensor(e).strides = std::vector<std::int64_t>(9, 1); },
         "9 sizes and 9 strides"},
        {"TensorStrides", [](Entry& e) { tensor(e).strides.pop_back(); }, "2 sizes and 1 strides"},
        {"TensorSizeNegative", [](Entry& e) { tensor(e).sizes[0] = -1; },
         "dimension 0: size -1 or stride 256 is negative"},
        {"TensorStrideNegative", [](Entry& e) { tensor(e).strides[1] = -1; },
         "dimension 1: size 128 or stride -1 is negative"},
        {"TensorOverflows",
         [](Entry& e) { tensor(e).sizes[0] = tensor(e).strides[0] = std::numeric_limits<std::int64_t>::max(); },
         "it spans more than"},
        {"TensorHuge", [](Entry& e) { tensor(e).sizes[0] = 1LL << 40; }, "it spans more than"},
        {"TensorAlignment", [](Entry& e) { tensor(e).alignment = 512; },
         "alignment 512 is not a power of two up to 256"},
        {"TensorAlignmentOdd", [](Entry& e) { tensor(e).alignment = 3; }, "alignment 3 is not a power of two"},
        {"TensorAliasesLater", [](Entry& e) { tensor(e).alias_group = 2; }, "alias group 2 is not an earlier tensor"},
        {"TensorWithoutName", [](Entry& e) { tensor(e).name = ""; }, "guard of tensor 1 '': the tensor has no name"},
        {"ValueDType", [](Entry& e) { e.header.guards.values[0].dtype = static_cast<DType>(255); },
         "guard of value 0 'temperature': dtype 255 is unknown"},
        {"ValueTooWide", [](Entry& e) { e.header.guards.values[1].bits = 256; },
         "guard of value 1 'greedy': bits 0x100 do not fit a bool"},
        {"ValueWithoutName", [](Entry& e) { e.header.guards.values[0].name = ""; },
         "guard of value 0 '': the value has no name"},
        {"TimeNegative", [](Entry& e) { e.header.info.record_ms = -1; }, "-1 ms is not a valid time"},
        {"TimeNaN", [](Entry& e) { e.header.info.record_ms = std::nan(""); }, "nan ms is not a valid time"},
        {"TimeOfACompiledProgramNegative", [](Entry& e) { e.header.info.compiled = {{{}, -1}}; },
         "-1 ms is not a valid time"},
        {"TimeOfTheAnswerNegative", [](Entry& e) { e.header.info.answer_ms = -2; }, "-2 ms is not a valid time"},
        {"TimeOfTheAnswerInfinite", [](Entry& e) { e.header.info.answer_ms = std::numeric_limits<double>::infinity(); },
         "inf ms is not a valid time"},
        {"RecordingPart", [](Entry& e) { e.header.recording = {{1, 2}, static_cast<Part>(3)}; },
         "part 3 of a recording is unknown"},
        {"HeaderKind", [](Entry& e) { e.header.kind = EntryKind::tombstone; }, "header has kind 2, the envelope 1"},
    };
    return k_headers;
}

class HostileHeader : public testing::TestWithParam<Hostile> {};

TEST_P(HostileHeader, IsRefusedByNameBeforeThePayload)
{
    Entry entry = sample_entry();
    GetParam().spoil(entry);
    settle(entry);
    const Bytes payload = write_payload(entry.graph);
    const Bytes bytes = assemble(entry.header.key, write_header(entry.header), payload, payload.size());
    EXPECT_TRUE(failed_with(decode_header(bytes, entry.header.key), ErrorCode::corrupt, GetParam().message));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key), ErrorCode::corrupt, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Each, HostileHeader, testing::ValuesIn(hostile_headers()),
                         [](const auto& given) { return std::string{given.param.name}; });

class Header : public testing::Test {
protected:
    Bytes with(const EntryHeader& header) const
    {
        return assemble(header.key, write_header(header), payload, payload.size());
    }
    Entry entry = sample_entry();
    const Bytes payload = write_payload(entry.graph);
};

TEST_F(Header, WithGuardsThatAreNotTheKeysIsRefused)
{
    entry.header.guards.facts[0].value = "changed after the key was made";
    EXPECT_TRUE(failed_with(decode_header(with(entry.header), entry.header.key), ErrorCode::corrupt, "the key says"));
    entry.header.guards = sample_guards();
    entry.header.guards.tensors[0].alignment = 8;
    EXPECT_TRUE(
        failed_with(decode_header(with(entry.header), entry.header.key), ErrorCode::corrupt, "guards have digest"));
}

TEST_F(Header, WithAdvisoryFactsChangedIsAccepted)
{
    entry.header.guards.facts[1].value = "another device name";
    EXPECT_TRUE(succeeded(decode(with(entry.header), entry.header.key)));
}

TEST_F(Header, WhoseCountsAreNotTheGraphsIsRefused)
{
    entry.header.info.node_count = 6;
    EXPECT_TRUE(failed_with(decode(with(entry.header), entry.header.key), ErrorCode::corrupt,
                            "header says 6 nodes, the graph has 5"));
    entry.header.info.node_count = 5;
    entry.header.info.image_count = 0;
    EXPECT_TRUE(failed_with(decode(with(entry.header), entry.header.key), ErrorCode::corrupt,
                            "header says 0 images, the graph has 2"));
}

TEST_F(Header, IsHeldToTheCallersLimits)
{
    const Bytes bytes = with(entry.header);
    EXPECT_TRUE(failed_with(decode_header(bytes, entry.header.key, {.header_bytes = 200}), ErrorCode::corrupt,
                            "over the limit of 200"));
    EXPECT_TRUE(failed_with(header_extent(bytes, {.header_bytes = 200}), ErrorCode::corrupt, "over the limit of 200"));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key, {.payload_bytes = 100}), ErrorCode::corrupt,
                            "over the limit of 100"));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key, {.payload_stored_bytes = 100}), ErrorCode::corrupt,
                            "expected 1 to 100"));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key, {.nodes = 4}), ErrorCode::corrupt,
                            "5 nodes are over the limit of 4"));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key, {.edges = 4}), ErrorCode::corrupt,
                            "5 edges are over the limit of 4"));
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key, {.params_per_node = 4}), ErrorCode::corrupt,
                            "node 1: 5 parameters are over the limit of 4"));
}

} // namespace
} // namespace warmgraph::cachefmt::test::hostile_header_test
