// Reads the flatbuffer of a header in a valid envelope.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace warmgraph;
    static const cachefmt::Entry tombstone = cachefmt::test::sample_tombstone();
    const ByteView header{reinterpret_cast<const std::byte*>(data), size};
    for (const auto kind : {cachefmt::EntryKind::tombstone, cachefmt::EntryKind::graph}) {
        const Bytes bytes = cachefmt::test::assemble(tombstone.header.key, header, {}, 0, 0, kind);
        fuzz::check_decoded(cachefmt::decode(bytes, tombstone.header.key, fuzz::limits()));
    }
    return 0;
}
