// Reads a whole entry file. Most mutations are sealed again, because an attacker can do that, too. Otherwise the fuzzer
// would never get past the first digest.
#include "sealed_entry.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace warmgraph;

const cachefmt::Trust& trust()
{
    static const cachefmt::Trust trust{.sign_with = {},
                                       .accepted = {std::make_shared<const SigningKey>(
                                           SigningKey::parse("ci:hmac-sha256:" + std::string(64, 'a')).value())},
                                       .require = true};
    return trust;
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    fuzz::seal_some(data, size, seed);
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const ByteView bytes{reinterpret_cast<const std::byte*>(data), size};
    const auto extent = cachefmt::header_extent(bytes, fuzz::limits());
    const auto header = cachefmt::decode_header(bytes, fuzz::entry_key(), fuzz::limits());
    const auto decoded = cachefmt::decode(bytes, fuzz::entry_key(), fuzz::limits());
    fuzz::require(!header || (extent && *extent <= size), "a header lies within its extent");
    fuzz::require(!decoded || (header && *header == decoded->header), "an entry's header is its header");
    fuzz::check_decoded(decoded);
    fuzz::require(!cachefmt::decode(bytes, fuzz::entry_key(), fuzz::limits(), trust()).has_value(),
                  "nobody can sign without the key");
    return 0;
}
