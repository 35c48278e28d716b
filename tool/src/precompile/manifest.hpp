// The programs that `warmgraph precompile` compiles: a JSON file (docs/precompile.md).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/error.hpp"

namespace warmgraph::tool {

inline constexpr std::size_t k_manifest_cap = 4UL << 20; ///< bytes
inline constexpr std::size_t k_most_programs = 10'000;
inline constexpr std::size_t k_most_targets = 64;
inline constexpr std::size_t k_source_cap = 64UL << 20; ///< bytes of a source file

struct ManifestProgram {
    std::string name;    ///< unique
    std::string backend; ///< "cuda", "opencl"
    std::string file{};  ///< path of the source; empty: `text` is given
    std::string text{};  ///< the source
    std::string options{};
    std::vector<std::string> include{};       ///< folders of headers
    std::vector<std::string> architectures{}; ///< replaces the architectures of the manifest
};

struct Manifest {
    std::vector<std::string> architectures{}; ///< for CUDA: "sm_90"
    std::vector<ManifestProgram> programs{};
};

/// Parses a manifest. invalid_argument says what is wrong, where, and what was expected.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text);

/// Reads the manifest and its sources, and makes all paths absolute, relative to the manifest's folder. not_found and
/// io_failed name the program and the file.
[[nodiscard]] Result<Manifest> read_manifest(const std::filesystem::path& file);

/// The program's options with its header folders, for a compiler.
[[nodiscard]] std::string options_of(const ManifestProgram& program);

} // namespace warmgraph::tool
