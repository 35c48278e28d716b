// Public, C++20. The kinds of artifacts in a cache (docs/kinds.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace warmgraph {

/// Bundles store these numbers: a number never changes, and new kinds get new numbers.
enum class ArtifactKind : std::uint32_t {
    entries = 1,   ///< recorded graphs with their guards
    images = 2,    ///< device code, stored by digest; it belongs to the entries that name it
    constants = 3, ///< contents of a graph's constants, stored by digest; they belong to the entries that name them
    compiled = 4,  ///< compiled programs
    tuned = 5,     ///< tuned configurations, of a kernel or of a module
    profiles = 6,  ///< shape profiles
    torch = 7,     ///< PyTorch's compiled code as bytes; loading them can run any code
};

/// Returns the kind's word in options, JSON keys and labels: "entries"; "unknown" for a number that this version does
/// not know.
[[nodiscard]] constexpr std::string_view to_string(ArtifactKind kind) noexcept
{
    switch (kind) {
    case ArtifactKind::entries: return "entries";
    case ArtifactKind::images: return "images";
    case ArtifactKind::constants: return "constants";
    case ArtifactKind::compiled: return "compiled";
    case ArtifactKind::tuned: return "tuned";
    case ArtifactKind::profiles: return "profiles";
    case ArtifactKind::torch: return "torch";
    }
    return "unknown";
}

} // namespace warmgraph
