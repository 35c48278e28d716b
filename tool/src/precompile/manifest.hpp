// What `warmgraph precompile` is to compile: a JSON file (docs/precompile.md).
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
    std::string name;    ///< each once
    std::string backend; ///< "cuda", "opencl"
    std::string file{};  ///< of the source; or
    std::string text{};  ///< the source itself
    std::string options{};
    std::vector<std::string> include{};       ///< folders of headers
    std::vector<std::string> architectures{}; ///< in place of the manifest's
};

struct Manifest {
    std::vector<std::string> architectures{}; ///< for CUDA: "sm_90"
    std::vector<ManifestProgram> programs{};
};

/// invalid_argument: what is wrong, where, and what was expected.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text);

/// With sources read and all paths made absolute, those of the manifest by its folder. not_found, io_failed name the
/// program and the file.
[[nodiscard]] Result<Manifest> read_manifest(const std::filesystem::path& file);

/// The program's options with its folders of headers, as a compiler takes them.
[[nodiscard]] std::string options_of(const ManifestProgram& program);

} // namespace warmgraph::tool
