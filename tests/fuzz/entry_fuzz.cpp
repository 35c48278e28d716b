// A whole entry file. Most mutations are sealed again, as somebody who can write to the folder would do: without,
// nothing behind the first digest were ever reached.
#include <cstring>

#include "fuzz.hpp"
#include "reseal.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace warmgraph;
namespace at = test::envelope_at;

const cachefmt::EntryKey& key()
{
    static const cachefmt::EntryKey key = cachefmt::test::sample_entry().header.key;
    return key;
}

const cachefmt::Trust& trust()
{
    static const cachefmt::Trust trust{.sign_with = {},
                                       .accepted = {std::make_shared<const SigningKey>(
                                           SigningKey::parse("ci:hmac-sha256:" + std::string(64, 'a')).value())},
                                       .require = true};
    return trust;
}

/// The sizes in the envelope fit the bytes, and everything is sealed.
void make_whole(Bytes& bytes)
{
    const std::string_view magic{"\x89WGENT\r\n"};
    std::memcpy(bytes.data(), magic.data(), magic.size());
    test::poke(bytes, at::version, cachefmt::k_format_version);
    const std::uint64_t rest = bytes.size() - at::end;
    const auto header = std::min(load<std::uint64_t>(bytes, at::header_size), rest);
    test::poke(bytes, at::header_size, header);
    test::poke(bytes, at::payload_stored, rest - header);
    if (load<std::uint32_t>(bytes, at::compression) == 0) test::poke(bytes, at::payload_raw, rest - header);
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (size < at::end || seed % 8 == 0) return size; // as it is: damage by chance
    Bytes bytes(size);
    std::memcpy(bytes.data(), data, size);
    if (seed % 8 != 1) make_whole(bytes); // else sizes that lie, well sealed
    test::reseal(bytes, key());
    std::memcpy(data, bytes.data(), size);
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    const auto extent = cachefmt::header_extent(bytes, fuzz::limits());
    const auto header = cachefmt::decode_header(bytes, key(), fuzz::limits());
    const auto decoded = cachefmt::decode(bytes, key(), fuzz::limits());
    fuzz::require(!header || (extent && *extent <= size), "a header lies within its extent");
    fuzz::require(!decoded || (header && *header == decoded->header), "an entry's header is its header");
    fuzz::check_decoded(decoded);
    fuzz::require(!cachefmt::decode(bytes, key(), fuzz::limits(), trust()).has_value(),
                  "nobody can sign without the key");
    return 0;
}
