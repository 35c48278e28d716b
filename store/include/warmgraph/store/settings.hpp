// Settings of the cache folder as an environment variable or a command line gives them. The variables WARMGRAPH_CACHE_BYTES,
// WARMGRAPH_CACHE_FILES, WARMGRAPH_COMPRESSION and WARMGRAPH_KINDS are read here alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/store/artifact_kind.hpp"
#include "warmgraph/store/packing.hpp"
#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::store {

/// "1000" or "1000,1001": user ids. "" is none. invalid_argument says what is expected.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_owners(std::string_view what, std::string_view text);

/// "8G", "500M", "64K", "1T" (powers of 1024, also as "8g", "8GB", "8 GiB" and "1.5G"), or bytes without a unit. invalid_argument
/// likewise.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view what, std::string_view text);

/// "100000". invalid_argument likewise.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view what, std::string_view text);

/// What a folder may hold, and what some kinds may take of it.
struct BytesBudget {
    std::uint64_t all = 0; ///< 0: not said
    KindBytes kinds{};
};
/// "8G", "8G,compiled=1G,tuned=64M" or "compiled=1G": a size for all, and sizes by kind. "" says nothing. Sizes as parse_bytes()
/// takes them. invalid_argument likewise.
[[nodiscard]] Result<BytesBudget> parse_budget(std::string_view what, std::string_view text);

/// Those that are on: what is off is neither looked up, read, written nor counted. "all" and "": all; "entries,compiled":
/// these alone; "-tuned,-profiles": all but these. invalid_argument for an unknown kind, and for kinds with and without '-'
/// together, names `what`, where the text stood.
[[nodiscard]] Result<KindSet> parse_kinds(std::string_view what, std::string_view text);
/// Why nothing is found: "compiled programs are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)"
[[nodiscard]] std::string switched_off(std::string_view kind);

/// Of a setting that only tunes. A value that makes no sense costs a warning, never a service's start: the default is used.
template <class Value>
[[nodiscard]] Value or_default(Result<Value> setting)
{
    if (setting) return std::move(*setting);
    log().warn("{}: the default is used", setting.error().message);
    return {};
}

/// $WARMGRAPH_CACHE_BYTES.
[[nodiscard]] Result<BytesBudget> environment_bytes();
/// $WARMGRAPH_CACHE_BYTES and $WARMGRAPH_CACHE_FILES. One that makes no sense is a warning.
[[nodiscard]] Budget environment_budget();
/// $WARMGRAPH_COMPRESSION. One that makes no sense is a warning.
[[nodiscard]] Packings environment_packings();
/// $WARMGRAPH_KINDS.
[[nodiscard]] Result<KindSet> environment_kinds();

} // namespace warmgraph::store
