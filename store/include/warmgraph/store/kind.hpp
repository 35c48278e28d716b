// The kinds of what a cache folder keeps. Each has its budget, is cleared and counted by itself (docs/kinds.md).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

enum class Kind : std::uint8_t {
    graphs,   ///< entries, with the images and constants that they name
    compiled, ///< programs
    tuned,    ///< configurations, of kernels and of modules
    profile,  ///< shapes
    torch,    ///< what PyTorch compiled
};
inline constexpr std::array k_kinds{Kind::graphs, Kind::compiled, Kind::tuned, Kind::profile, Kind::torch};
/// Those that are kept as artifacts, below a folder of their own each.
inline constexpr std::array k_kinds_of_artifacts{Kind::compiled, Kind::tuned, Kind::profile, Kind::torch};

/// "graphs", "compiled", "tuned", "profile", "torch"; and back, nullopt for another name.
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;
[[nodiscard]] std::optional<Kind> kind_of(std::string_view name) noexcept;

/// What an object of this name is a part of.
[[nodiscard]] Kind kind_of(const Name& name) noexcept;

/// Bytes of some kinds.
using KindBytes = std::map<Kind, std::uint64_t>;

} // namespace warmgraph::store
