// Reads the flatbuffer of a payload in a valid entry, whose header is made for the payload. Then compares the payload's
// graph with the graphs of the original inputs.
#include "flat_reader.hpp"
#include "flat_writer.hpp"
#include "fuzz.hpp"

namespace {

using namespace warmgraph;

void check_difference(const cachefmt::Graph& graph)
{
    static const cachefmt::Graph k_samples[] = {cachefmt::test::sample_entry().graph,
                                                cachefmt::test::sample_cuda_entry().graph};
    fuzz::require(cachefmt::difference(graph, graph).empty(), "a graph does not differ from itself");
    const bool is_valid = cachefmt::validate(graph, fuzz::limits()).has_value(); // else an edge may occur twice
    for (const cachefmt::Graph& sample : k_samples) {
        const bool is_same = cachefmt::graph_digest(graph) == cachefmt::graph_digest(sample);
        const auto there = cachefmt::difference(sample, graph), back = cachefmt::difference(graph, sample, 1);
        fuzz::require(!is_valid || (there.empty() == is_same && back.empty() == is_same),
                      "what the digest covers has a line");
        fuzz::require(there.size() <= 16 && back.size() <= 1, "there are no more lines than are asked for");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const cachefmt::Entry sample = cachefmt::test::sample_entry();
    const ByteView payload{reinterpret_cast<const std::byte*>(data), size};
    auto graph = cachefmt::read_payload(payload, fuzz::limits());
    cachefmt::Entry entry = sample;
    if (graph) {
        check_difference(*graph);
        entry.graph = std::move(*graph);
    }
    cachefmt::test::settle(entry);
    const Bytes bytes = cachefmt::test::assemble(entry.header.key, cachefmt::write_header(entry.header), payload, size);
    fuzz::check_decoded(cachefmt::decode(bytes, entry.header.key, fuzz::limits()));
    return 0;
}
