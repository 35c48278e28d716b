// An input of the fuzz target for the report: two sizes, and then a function's usage.json, its misses.jsonl and its
// entry.
#pragma once

#include "fuzz.hpp"
#include "reseal.hpp"

namespace warmgraph::fuzz {

/// The key that the entry has in the kept inputs, in the form that the store uses.
inline const cachefmt::EntryKey& report_key()
{
    static const cachefmt::EntryKey key = [] {
        cachefmt::EntryKey result = cachefmt::test::sample_entry().header.key;
        result.function.model_info = "TinyLlama_static_clgraphcache_1a2b3c4d5e6f";
        return result;
    }();
    return key;
}

struct ReportParts {
    Bytes usage, misses, entry;
};

inline Bytes joined(const ReportParts& parts)
{
    Bytes out(8);
    test::poke(out, 0, static_cast<std::uint32_t>(parts.usage.size()));
    test::poke(out, 4, static_cast<std::uint32_t>(parts.misses.size()));
    for (const Bytes* part : {&parts.usage, &parts.misses, &parts.entry})
        out.insert(out.end(), part->begin(), part->end());
    return out;
}

/// Splits the input. If a size is too large, only the bytes that exist are used.
inline ReportParts split(ByteView bytes)
{
    if (bytes.size() < 8) return {};
    ReportParts parts;
    std::size_t sizes[2] = {load<std::uint32_t>(bytes, 0), load<std::uint32_t>(bytes, 4)};
    bytes = bytes.subspan(8);
    for (std::size_t i = 0; i < 2; ++i) {
        const ByteView part = bytes.first(std::min(sizes[i], bytes.size()));
        (i == 0 ? parts.usage : parts.misses).assign(part.begin(), part.end());
        bytes = bytes.subspan(part.size());
    }
    parts.entry.assign(bytes.begin(), bytes.end());
    return parts;
}

} // namespace warmgraph::fuzz
