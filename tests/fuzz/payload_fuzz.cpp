// The payload's flatbuffer, in an entry that fits: the header is made for what the payload turns out to hold.
#include "flat_reader.hpp"
#include "flat_writer.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace warmgraph;
    static const cachefmt::Entry sample = cachefmt::test::sample_entry();
    const ByteView payload{reinterpret_cast<const std::byte*>(data), size};
    auto graph = cachefmt::read_payload(payload, fuzz::limits());
    cachefmt::Entry entry = sample;
    if (graph) entry.graph = std::move(*graph);
    cachefmt::test::settle(entry);
    const Bytes bytes = cachefmt::test::assemble(entry.header.key, cachefmt::write_header(entry.header), payload, size);
    fuzz::check_decoded(cachefmt::decode(bytes, entry.header.key, fuzz::limits()));
    return 0;
}
