// What PyTorch's compiler made in a process (its "Mega-Cache"), as bytes that only PyTorch reads: the file `.mega_cache`
// (docs/format.md).
//
// Reading them runs code: they hold pickles. So they are stored signed or not at all, and given only where an accepted key
// signed them, whether signatures are required in general or not.
//
// Thread-safe. A failure costs a compilation, never a result: it is an Error for the caller to count.
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
inline constexpr std::uint64_t k_torch_bytes = 1ULL << 30;                           ///< of PyTorch's, at most
inline constexpr std::uint64_t k_torch_facts_bytes = 64ULL << 10;                    ///< of the facts as text
inline constexpr std::uint64_t k_torch_cap = row_of(ArtifactKind::torch).most_bytes; ///< of a file
static_assert(k_torch_cap == k_torch_bytes + k_torch_facts_bytes + 1024);
inline constexpr std::size_t k_most_torch_facts = 64;

/// How its files are sealed and signed.
inline constexpr cachefmt::SealedKind k_sealed_torch{.magic = "WGTORCH\n",
                                                     .format = k_torch_format,
                                                     .name = "file of PyTorch's artifacts",
                                                     .digest_label = "warmgraph torch artifacts 1",
                                                     .signature_label = "warmgraph torch signature 1",
                                                     .most_facts = k_torch_facts_bytes};

/// By what they are found, as a caller in Python knows it: "torch" -> "2.11.0+cu130", "gpu" -> "NVIDIA H100". UTF-8.
using TorchFacts = std::map<std::string, std::string>;

/// Names the object. Of the facts alone: what PyTorch compiled is another thing each time.
[[nodiscard]] Digest key_of(const TorchFacts& facts);
[[nodiscard]] ArtifactName torch_name(const TorchFacts& facts);

/// What is known of an object without PyTorch.
struct TorchLabel {
    TorchFacts facts{};
    std::string written{};  ///< ISO 8601, UTC
    std::string key_id{};   ///< that it claims to be signed with
    std::uint64_t size = 0; ///< bytes of PyTorch's
    bool operator==(const TorchLabel&) const = default;
};

/// The same bytes at every call. invalid_argument: no facts, too many, or none that can be
/// stored as text; no bytes; unsupported: over the cap.
[[nodiscard]] Result<Bytes> encode_torch(const TorchFacts& facts, std::string_view written, ByteView bytes,
                                         const SigningKey& sign_with);
/// Whoever signed it, to be looked at or carried on. `corrupt`: not exactly what encode_torch() writes; `stale`: another
/// format.
[[nodiscard]] Result<TorchLabel> inspect_torch(ByteView object);
/// PyTorch's bytes of an object that an accepted key signed; else `untrusted`, with the cure, before anything else of it
/// is looked at.
[[nodiscard]] Result<Bytes> decode_torch(ByteView object, const cachefmt::Trust& trust);

/// Those of the folder, else of its layers; nullopt: there are none. corrupt and stale ones are set aside, untrusted ones
/// stay. `untrusted` too where `trust` has no key at all.
[[nodiscard]] Result<std::optional<Bytes>> find_torch(LocalStore& store, const TorchFacts& facts,
                                                      const cachefmt::Trust& trust);
/// Replaces what is there. `untrusted` where `trust` has no key to sign with.
[[nodiscard]] Result<void> put_torch(LocalStore& store, const TorchFacts& facts, std::string_view written,
                                     ByteView bytes, const cachefmt::Trust& trust);

} // namespace warmgraph::store
