// Seals entries that a mutator changed, because an attacker can do that too.
#pragma once

#include <cstring>

#include "fuzz.hpp"
#include "reseal.hpp"

namespace warmgraph::fuzz {

/// The key that the entries in the kept inputs have.
inline const cachefmt::EntryKey& entry_key()
{
    static const cachefmt::EntryKey key = cachefmt::test::sample_entry().header.key;
    return key;
}

/// Sets magic, version and sizes in the envelope so that they fit the bytes.
inline void make_whole(Bytes& bytes)
{
    namespace at = test::envelope_at;
    const std::string_view magic{"\x89WGENT\r\n"};
    std::memcpy(bytes.data(), magic.data(), magic.size());
    test::poke(bytes, at::version, cachefmt::k_format_version);
    const std::uint64_t rest = bytes.size() - at::end;
    const auto header = std::min(load<std::uint64_t>(bytes, at::header_size), rest);
    test::poke(bytes, at::header_size, header);
    test::poke(bytes, at::payload_stored, rest - header);
    if (load<std::uint32_t>(bytes, at::compression) == 0) test::poke(bytes, at::payload_raw, rest - header);
}

/// Seals most inputs again. Otherwise the fuzzer would never get past the first digest.
inline void seal_some(std::uint8_t* data, std::size_t size, unsigned seed, const cachefmt::EntryKey& key = entry_key())
{
    if (size < test::envelope_at::end || seed % 8 == 0) return; // unchanged digests, as after accidental damage
    Bytes bytes(size);
    std::memcpy(bytes.data(), data, size);
    if (seed % 8 != 1) make_whole(bytes); // in the other case, the sizes are wrong but the digests match
    test::reseal(bytes, key);
    std::memcpy(data, bytes.data(), size);
}

} // namespace warmgraph::fuzz
