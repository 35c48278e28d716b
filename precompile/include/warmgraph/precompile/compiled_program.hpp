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
    store::row_of(store::ArtifactKind::compiled).most_bytes; ///< bytes of a file
inline constexpr std::uint64_t k_facts_cap = 4ULL << 20;     ///< bytes of its facts
inline constexpr std::size_t k_most_option_words = 4096;

/// How these files are sealed and signed.
inline constexpr cachefmt::SealedKind k_sealed_program{.magic = "WGCOMPIL",
                                                       .format = k_compiled_format,
                                                       .name = "compiled program",
                                                       .digest_label = "warmgraph compiled program 1",
                                                       .signature_label = "warmgraph compiled signature 1",
                                                       .most_facts = k_facts_cap};

/// Everything that decides the result of a compilation. Contents, never paths.
struct Ingredients {
    std::string program; ///< its name, for people; not part of the key
    std::string backend; ///< "cuda"
    Digest source;
    std::vector<std::string> options{}; ///< Options::words
    std::vector<Header> headers{};
    Digest search{};      ///< Headers::search
    std::string target;   ///< in the compiler's notation: "sm_90"
    std::string compiler; ///< with version and build
    bool operator==(const Ingredients&) const = default;
};

[[nodiscard]] Digest key_of(const Ingredients& ingredients);

/// The inputs that differ, each with a cure; empty when the keys are equal.
[[nodiscard]] std::vector<store::MissedFact> differences(const Ingredients& then, const Ingredients& now);

struct CompiledProgram {
    Ingredients ingredients;
    backends::Compiled compiled;
    double compile_ms = 0;
    std::string written{}; ///< ISO 8601, UTC
};

/// The same program gives the same bytes. Signs if a key is given. invalid_argument: a text is not UTF-8 or is too
/// long, so that decode() would refuse it; unsupported: larger than the cap.
[[nodiscard]] Result<Bytes> encode(const CompiledProgram& program, const SigningKey* sign_with = nullptr);

/// `corrupt`: not exactly encode()'s format. `stale`: another format. `untrusted`: a required signature is missing.
[[nodiscard]] Result<CompiledProgram> decode(ByteView bytes, const cachefmt::Trust& trust = {});
/// Decodes everything but the image from the file's first bytes; does not read the image. Errors as in decode().
[[nodiscard]] Result<CompiledProgram> decode_facts(ByteView first, const cachefmt::Trust& trust = {});
/// Decodes only the ingredients, to explain a miss.
[[nodiscard]] Result<Ingredients> decode_ingredients(ByteView first);
/// The number of bytes before the image. `corrupt`: the file is shorter.
[[nodiscard]] Result<std::uint64_t> facts_extent(ByteView bytes);

} // namespace warmgraph::precompile
