// The results of PyTorch's compiler in a process (its "Mega-Cache"), as bytes that only PyTorch reads: the file
// `.mega_cache` (docs/format.md).
//
// Reading them runs code: they hold pickles. So they are always stored signed, and only read with an accepted
// signature, even when signatures are not required in general.
//
// Thread-safe. A failure is an Error for the caller to count: it costs a compilation, never a result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "warmgraph/cachefmt/sealed.hpp"
#include "warmgraph/cachefmt/trust.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::store {

inline constexpr std::uint32_t k_torch_format = 1;
inline constexpr std::uint64_t k_torch_bytes = 1ULL << 30;        ///< the most bytes that PyTorch may give
inline constexpr std::uint64_t k_torch_facts_bytes = 64ULL << 10; ///< the most bytes of the facts as text
inline constexpr std::uint64_t k_torch_cap = row_of(ArtifactKind::torch).most_bytes; ///< the most bytes of a file
static_assert(k_torch_cap == k_torch_bytes + k_torch_facts_bytes + 1024);
inline constexpr std::size_t k_most_torch_facts = 64;

/// How these files are sealed and signed.
inline constexpr cachefmt::SealedKind k_sealed_torch{.magic = "WGTORCH\n",
                                                     .format = k_torch_format,
                                                     .name = "file of PyTorch's artifacts",
                                                     .digest_label = "warmgraph torch artifacts 1",
                                                     .signature_label = "warmgraph torch signature 1",
                                                     .most_facts = k_torch_facts_bytes};

/// The facts that identify the artifacts; Python chooses them: "torch" -> "2.11.0+cu130", "gpu" -> "NVIDIA H100".
using TorchFacts = std::map<std::string, std::string>;

/// The object's name. It depends on the facts alone, because PyTorch's bytes differ each time.
[[nodiscard]] Digest key_of(const TorchFacts& facts);
[[nodiscard]] ArtifactName torch_name(const TorchFacts& facts);

/// The data about an object that can be read without PyTorch.
struct TorchLabel {
    TorchFacts facts{};
    std::string written{};  ///< ISO 8601, UTC
    std::string key_id{};   ///< the id of the key that is said to have signed it
    std::uint64_t size = 0; ///< size of PyTorch's bytes
    bool operator==(const TorchLabel&) const = default;
};

/// Deterministic. invalid_argument: no facts, too many facts, facts that cannot be stored as text, or no bytes;
/// unsupported: larger than the cap.
[[nodiscard]] Result<Bytes> encode_torch(const TorchFacts& facts, std::string_view written, ByteView bytes,
                                         const SigningKey& sign_with);
/// Reads the label without checking the signature, for display or for copying. `corrupt`: not exactly encode_torch()'s
/// format; `stale`: another format version.
[[nodiscard]] Result<TorchLabel> inspect_torch(ByteView object);
/// Returns PyTorch's bytes from an object with an accepted signature; else `untrusted`, with the cure.
[[nodiscard]] Result<Bytes> decode_torch(ByteView object, const cachefmt::Trust& trust);

/// Finds the bytes in the folder, else in its layers; nullopt: not found. Corrupt and stale objects are set aside,
/// untrusted objects stay. Also `untrusted` when `trust` has no key.
[[nodiscard]] Result<std::optional<Bytes>> find_torch(LocalStore& store, const TorchFacts& facts,
                                                      const cachefmt::Trust& trust);
/// Replaces an older object. `untrusted` when `trust` has no key to sign with.
[[nodiscard]] Result<void> put_torch(LocalStore& store, const TorchFacts& facts, std::string_view written,
                                     ByteView bytes, const cachefmt::Trust& trust);

} // namespace warmgraph::store
