// The tuned configurations of one module: all that were asked for between begin and end of its compile, in one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph::autotune {

inline constexpr std::uint64_t k_module_format = 1;
inline constexpr std::uint64_t k_module_cap = store::row_of(store::ArtifactKind::tuned).most_bytes; ///< bytes of a file
inline constexpr std::size_t k_most_module_configs = 4096;

struct ModuleConfigs {
    std::string module;                     ///< its name
    Digest key;                             ///< of what it is; names the file
    std::map<Digest, BestConfig> configs{}; ///< by their keys
    bool operator==(const ModuleConfigs&) const = default;
};

/// What was loaded, with what is newer or more; where that is too much, the newer alone.
[[nodiscard]] std::map<Digest, BestConfig> merged(std::map<Digest, BestConfig> loaded,
                                                  const std::map<Digest, BestConfig>& newer);

/// One spelling for each value, as of a single configuration.
[[nodiscard]] std::string encode(const ModuleConfigs& module);
/// `corrupt` and `stale` as of a single configuration; one that is wrong makes the whole wrong.
[[nodiscard]] Result<ModuleConfigs> decode_module(ByteView bytes);

} // namespace warmgraph::autotune
