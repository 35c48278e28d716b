// Entry <-> bytes. The format is specified in schema/entry.fbs and docs/format.md.
//
// A reader checks in this order: magic, seal of the first bytes and format version -> every size against its limit and
// the bytes at hand -> digest over the stored bytes and the key -> signature -> decompression (bounded) -> flatbuffers
// verifier -> meaning (validate). Failures: `stale` for another format version or key, `untrusted` for a missing or
// unaccepted signature, else `corrupt`. All functions are pure and thread-safe. None allocates more than twice the
// limit, nor more than 24 bytes for each byte of an expanded payload, which is at most 64 times the stored one.
#pragma once

#include <cstdint>
#include <optional>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::cachefmt {

inline constexpr std::uint32_t k_format_version = 5;

/// Limits for reading. Anything larger is refused before memory is allocated.
struct Limits {
    std::uint64_t header_bytes = 1ULL << 20;
    std::uint64_t payload_stored_bytes = 256ULL << 20;
    std::uint64_t payload_bytes = 256ULL << 20;
    std::uint32_t nodes = 200'000;
    std::uint32_t edges = 2'000'000;
    std::uint32_t params_per_node = 4'096;
    std::uint32_t attributes_per_node = 64;  ///< launch attributes of one kernel; the same for function attributes
    std::uint32_t attribute_bytes = 64;      ///< size of one attribute: CUDA's CUlaunchAttributeValue
    std::uint32_t operations_per_node = 256; ///< memory operations that CUDA accepts in one batch
    std::uint32_t events = 65'536;
    std::uint32_t semaphores = 65'536;
    std::uint32_t semaphores_per_node = 256;
    std::uint32_t variables_per_image = 4'096;
    std::uint64_t variable_bytes = 64ULL << 20; ///< size of one module variable
    std::uint32_t regions = 65'536;
    std::uint64_t param_bytes = 32'768; ///< size of one kernel node's parameters, CUDA's limit on Hopper
    std::uint32_t scalars = 4'096;
    std::uint32_t images = 65'536;
    std::uint64_t image_bytes = 4ULL << 30;  ///< size of one image
    std::uint64_t region_bytes = 1ULL << 48; ///< size of one region: no device addresses more
    std::uint64_t arena_bytes = 1ULL << 40;  ///< size of all arena regions together: they are allocated at load
    std::uint64_t local_bytes = 1ULL << 20;  ///< size of one kernel node's work-group memory
};

struct EncodeOptions {
    std::uint64_t compress_above = 16ULL * 1024; ///< bytes; smaller payloads are stored uncompressed
    int zstd_level = 3;
    const SigningKey* sign_with = nullptr; ///< null: unsigned
};

/// Deterministic: equal entries give equal bytes. Parameter bytes under slots are stored as zeros, because every replay
/// overwrites them. REQUIRES (else `internal`): validate(entry.graph) holds, the key has the digest of the guards,
/// facts are sorted by name, and the header's counts of nodes and images are right.
[[nodiscard]] Result<Bytes> encode(const Entry& entry, const EncodeOptions& options = {});

/// Returns the format version; nullopt if the bytes are too short, have another magic, or fail the seal of the first
/// bytes (formats before 5 have no seal). The seal tells a file of a newer warmgraph from a damaged file.
[[nodiscard]] std::optional<std::uint32_t> stored_format_version(ByteView prefix);

/// Returns the length of the file's start that holds the header; checks magic, version and sizes. `corrupt` if `prefix`
/// is shorter than k_envelope_bytes.
[[nodiscard]] Result<std::uint64_t> header_extent(ByteView prefix, const Limits& limits = {});

/// Decodes the header from the first header_extent() bytes; `prefix` may be longer. Verifies its digest and ignores the
/// payload. `expected` comes from the folder's names and the file's name: another key is `stale`.
[[nodiscard]] Result<EntryHeader> decode_header(ByteView prefix, const EntryKey& expected, const Limits& limits = {},
                                                const Trust& trust = {});

/// Decodes and fully verifies the whole entry.
[[nodiscard]] Result<Entry> decode(ByteView bytes, const EntryKey& expected, const Limits& limits = {},
                                   const Trust& trust = {});

/// Checks the graph's meaning: indices, order of edges, slots inside their parameters and regions, limits on counts and
/// sizes, names, alignments that are powers of two. `corrupt` names the first fault.
[[nodiscard]] Result<void> validate(const Graph& graph, const Limits& limits = {});

inline constexpr std::size_t k_envelope_bytes = 352; ///< fixed part at the start of every file

} // namespace warmgraph::cachefmt
