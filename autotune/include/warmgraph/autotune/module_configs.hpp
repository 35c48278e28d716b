// The tuned configurations of one module, in one file. The file has all configurations that the module's compilation
// asked for between begin and end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph::autotune {

inline constexpr std::uint64_t k_module_format = 1;
/// Largest size of a file, in bytes.
inline constexpr std::uint64_t k_module_cap = store::row_of(store::ArtifactKind::tuned).most_bytes;
inline constexpr std::size_t k_most_module_configs = 4096;

struct ModuleConfigs {
    std::string module;                     ///< the module's name
    Digest key;                             ///< identifies the module; it is the file's name
    std::map<Digest, BestConfig> configs{}; ///< the configurations, by their keys
    bool operator==(const ModuleConfigs&) const = default;
};

/// Adds the newer configurations to the loaded ones. If there are then too many, only the newer configurations stay.
[[nodiscard]] std::map<Digest, BestConfig> merged(std::map<Digest, BestConfig> loaded,
                                                  const std::map<Digest, BestConfig>& newer);

/// Writes the file's text. The same value gives the same bytes, as for a single configuration.
[[nodiscard]] std::string encode(const ModuleConfigs& module);
/// Reads the file. Errors: the same as for a single configuration. One bad configuration makes the whole file bad.
[[nodiscard]] Result<ModuleConfigs> decode_module(ByteView bytes);

} // namespace warmgraph::autotune
