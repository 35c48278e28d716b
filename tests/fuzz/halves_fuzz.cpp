// The header and the graph of a pair, sealed as an entry, and each half taken out. The first four bytes of an input say how
// many of the others are the header's.
#include <algorithm>

#include "flat_reader.hpp"
#include "flat_writer.hpp"
#include "fuzz.hpp"
#include "warmgraph/cachefmt/halves.hpp"

namespace {

using namespace warmgraph;

/// What decode() makes of them; nullopt where it would refuse.
std::optional<cachefmt::Entry> decoded(ByteView bytes)
{
    if (bytes.size() < 4) return std::nullopt;
    const auto size = std::min<std::size_t>(load<std::uint32_t>(bytes, 0), bytes.size() - 4);
    const ByteView payload = bytes.subspan(4 + size);
    auto header = cachefmt::read_header(bytes.subspan(4, size), fuzz::limits());
    auto graph = cachefmt::read_payload(payload, fuzz::limits());
    if (!header || !graph) return std::nullopt;
    cachefmt::Entry entry{std::move(*header), std::move(*graph)};
    cachefmt::test::settle(entry);
    const auto whole = cachefmt::decode(
        cachefmt::test::assemble(entry.header.key, cachefmt::write_header(entry.header), payload, payload.size()),
        entry.header.key, fuzz::limits());
    return whole ? std::optional(*whole) : std::nullopt;
}

void check_half(const cachefmt::Entry& pair, cachefmt::Half half)
{
    const auto header = cachefmt::half_header(pair.header, half);
    fuzz::require(header.has_value() == cachefmt::is_pair(pair.header.guards),
                  "a pair has two halves, others have none");
    const auto entry = cachefmt::half_of(pair, half);
    if (!entry) {
        fuzz::require(entry.error().code == ErrorCode::corrupt && !entry.error().message.empty(),
                      "a half that does not come apart is corrupt");
        return;
    }
    fuzz::require(header && entry->header.key == header->key && entry->header.guards == header->guards,
                  "a half has the header that was told");
    fuzz::require(cachefmt::guards_digest(entry->header.guards) == entry->header.key.guards_digest,
                  "the guards are the key's");
    fuzz::require(cachefmt::validate(entry->graph, fuzz::limits()).has_value(), "a half is a graph that can be built");
    static_cast<void>(cachefmt::to_readable(*entry));
    static_cast<void>(cachefmt::blobs_of(entry->graph));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto pair = decoded({reinterpret_cast<const std::byte*>(data), size});
    if (!pair) return 0;
    for (const cachefmt::Half half : {cachefmt::Half::forward, cachefmt::Half::backward}) check_half(*pair, half);
    const auto forward = cachefmt::half_of(*pair, cachefmt::Half::forward),
               backward = cachefmt::half_of(*pair, cachefmt::Half::backward);
    if (forward && backward && pair->header.kind == cachefmt::EntryKind::graph)
        if (const auto again = cachefmt::join(*forward, *backward, std::vector<std::string>{"h"}))
            static_cast<void>(cachefmt::difference(pair->graph, again->graph));
    return 0;
}
