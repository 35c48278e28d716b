// Parsers for settings of the cache folder in environment variables and on command lines. Only this file reads the variables
// WARMGRAPH_CACHE_BYTES, WARMGRAPH_CACHE_FILES, WARMGRAPH_COMPRESSION and WARMGRAPH_KINDS.
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

/// Parses user ids: "1000" or "1000,1001". "" gives an empty list. The error invalid_argument says what is expected.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_owners(std::string_view what, std::string_view text);

/// Parses a size: "8G", "500M", "64K", "1T" (powers of 1024, also "8g", "8GB", "8 GiB", "1.5G"), or bytes. Errors as
/// above.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view what, std::string_view text);

/// Parses a number: "100000". Errors as above.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view what, std::string_view text);

/// The most bytes that a folder may hold, in all and by kind.
struct BytesBudget {
    std::uint64_t all = 0; ///< 0: not given
    KindBytes kinds{};
};
/// Parses "8G", "8G,compiled=1G,tuned=64M" or "compiled=1G": a size for all, and sizes by kind, each as in
/// parse_bytes(). "" gives an empty budget. Errors as above.
[[nodiscard]] Result<BytesBudget> parse_budget(std::string_view what, std::string_view text);

/// Parses the set of kinds that are switched on. A kind that is off is not looked up, read, written or counted. "all"
/// and "": all kinds; "entries,compiled": only these two; "-tuned,-profiles": all but these two. invalid_argument for
/// an unknown kind, and for a mix of kinds with and without '-'; the message names `what` (the option or variable).
[[nodiscard]] Result<KindSet> parse_kinds(std::string_view what, std::string_view text);
/// The reason why a lookup finds nothing: "compiled programs are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)"
[[nodiscard]] std::string switched_off(std::string_view kind);

/// Gives the default for a bad value and logs a warning, so that the service still starts. It is for settings that only
/// affect speed and space.
template <class Value>
[[nodiscard]] Value or_default(Result<Value> setting)
{
    if (setting) return std::move(*setting);
    log().warn("{}: the default is used", setting.error().message);
    return {};
}

/// Returns the budget in $WARMGRAPH_CACHE_BYTES.
[[nodiscard]] Result<BytesBudget> environment_bytes();
/// Returns the budget in $WARMGRAPH_CACHE_BYTES and $WARMGRAPH_CACHE_FILES. A value that makes no sense gives the
/// default and a warning.
[[nodiscard]] Budget environment_budget();
/// Returns the compression in $WARMGRAPH_COMPRESSION. A value that makes no sense gives the default and a warning.
[[nodiscard]] Packings environment_packings();
/// Returns the kinds in $WARMGRAPH_KINDS.
[[nodiscard]] Result<KindSet> environment_kinds();
/// Returns the tag that all keys have (CacheOptions::cache_key_tag): the given one, or else $WARMGRAPH_CACHE_KEY_TAG; "":
/// no tag. invalid_argument: more than 256 characters, or others than printable ASCII.
[[nodiscard]] Result<std::string> resolve_key_tag(std::string given);

} // namespace warmgraph::store
