// The tuned configurations of one module, in one file: all that its compilation asked for between begin and end.
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
    Digest key;                             ///< identifies the module; names the file
    std::map<Digest, BestConfig> configs{}; ///< by their keys
    bool operator==(const ModuleConfigs&) const = default;
};

/// Adds the newer configurations to the loaded ones. If these are too many, only the newer ones stay.
[[nodiscard]] std::map<Digest, BestConfig> merged(std::map<Digest, BestConfig> loaded,
                                                  const std::map<Digest, BestConfig>& newer);

/// The same value gives the same bytes, as for a single configuration.
[[nodiscard]] std::string encode(const ModuleConfigs& module);
/// Errors as for a single configuration; one bad configuration makes the whole file bad.
[[nodiscard]] Result<ModuleConfigs> decode_module(ByteView bytes);

} // namespace warmgraph::autotune
