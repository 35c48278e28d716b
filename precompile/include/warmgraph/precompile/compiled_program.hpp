// A compiled program and the inputs of its compilation: the file `.compiled` (docs/format.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/sealed.hpp"
#include "warmgraph/cachefmt/trust.hpp"
#include "warmgraph/precompile/headers.hpp"
#include "warmgraph/store/artifact_kind.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::precompile {

inline constexpr std::uint32_t k_compiled_format = 1;
inline constexpr std::uint64_t k_compiled_cap =
    store::row_of(store::ArtifactKind::compiled).most_bytes; ///< largest size of a file, in bytes
inline constexpr std::uint64_t k_facts_cap = 4ULL << 20;     ///< largest size of the facts, in bytes
inline constexpr std::size_t k_most_option_words = 4096;

/// How these files are sealed and signed.
inline constexpr cachefmt::SealedKind k_sealed_program{.magic = "WGCOMPIL",
                                                       .format = k_compiled_format,
                                                       .name = "compiled program",
                                                       .digest_label = "warmgraph compiled program 1",
                                                       .signature_label = "warmgraph compiled signature 1",
                                                       .most_facts = k_facts_cap};

/// Everything that decides the result of a compilation. It has the contents of files, but never paths.
struct Ingredients {
    std::string program; ///< the program's name, for people; not part of the key
    std::string backend; ///< the backend's name: "cuda"
    Digest source;
    std::vector<std::string> options{}; ///< as Options::words
    std::vector<Header> headers{};
    Digest search{};      ///< as Headers::search
    std::string target;   ///< the target in the compiler's notation: "sm_90"
    std::string compiler; ///< the compiler with its version and build
    std::string tag{};    ///< CacheOptions::cache_key_tag; empty: no tag
    bool operator==(const Ingredients&) const = default;
};

[[nodiscard]] Digest key_of(const Ingredients& ingredients);

/// Returns the inputs that differ, each with a cure; empty if the keys are equal.
[[nodiscard]] std::vector<store::MissedFact> differences(const Ingredients& then, const Ingredients& now);

struct CompiledProgram {
    Ingredients ingredients;
    backends::CompiledImage compiled;
    double compile_ms = 0;
    std::string written{}; ///< ISO 8601, UTC
};

/// Writes the file's bytes; signs them if a key is given. The same program gives the same bytes. invalid_argument:
/// decode() would refuse a text, because it is not UTF-8 or too long; unsupported: the file would be larger than the
/// cap.
[[nodiscard]] Result<Bytes> encode(const CompiledProgram& program, const SigningKey* sign_with = nullptr);

/// Reads the file. `corrupt`: the bytes are not what encode() would write. `stale`: the file has another format.
/// `untrusted`: a required signature is missing.
[[nodiscard]] Result<CompiledProgram> decode(ByteView bytes, const cachefmt::Trust& trust = {});
/// Decodes everything except the image from the file's first bytes, without reading the image. Errors: the same as in
/// decode().
[[nodiscard]] Result<CompiledProgram> decode_facts(ByteView first, const cachefmt::Trust& trust = {});
/// Decodes only the ingredients, to explain a miss.
[[nodiscard]] Result<Ingredients> decode_ingredients(ByteView first);
/// Returns the number of bytes before the image. `corrupt`: the file is shorter.
[[nodiscard]] Result<std::uint64_t> facts_extent(ByteView bytes);

} // namespace warmgraph::precompile
