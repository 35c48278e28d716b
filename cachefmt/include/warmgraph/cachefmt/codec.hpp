// Entry <-> bytes. The format is specified in schema/entry.fbs and docs/format.md.
//
// Reading order, and nothing out of order: magic, first bytes' seal and format version -> every size against its cap
// and against the bytes at hand -> digest over the stored bytes and the key -> signature -> decompress (bounded) ->
// flatbuffers verifier -> semantic check (validate). Failures: `stale` for another format version or another key,
// `untrusted` for a signature that is missing or not accepted, `corrupt` for the rest. All functions are pure and
// thread-safe; none allocates more than twice the cap, nor more than 24 bytes for each byte of an expanded payload,
// which is at most 64 times the stored one.
#pragma once

#include <cstdint>
#include <optional>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::cachefmt {

inline constexpr std::uint32_t k_format_version = 5;

/// Upper limits of what is read. Anything larger is refused before it is allocated.
struct Limits {
    std::uint64_t header_bytes = 1ULL << 20;
    std::uint64_t payload_stored_bytes = 256ULL << 20;
    std::uint64_t payload_bytes = 256ULL << 20;
    std::uint32_t nodes = 200'000;
    std::uint32_t edges = 2'000'000;
    std::uint32_t params_per_node = 4'096;
    std::uint32_t attributes_per_node = 64;  ///< of the launch, and as many of the function
    std::uint32_t attribute_bytes = 64;      ///< of one attribute: CUDA's CUlaunchAttributeValue
    std::uint32_t operations_per_node = 256; ///< of memory: what CUDA takes in one batch
    std::uint32_t events = 65'536;
    std::uint32_t semaphores = 65'536;
    std::uint32_t semaphores_per_node = 256;
    std::uint32_t variables_per_image = 4'096;
    std::uint64_t variable_bytes = 64ULL << 20; ///< of one module variable
    std::uint32_t regions = 65'536;
    std::uint64_t param_bytes = 32'768; ///< of one kernel node, CUDA's limit on Hopper
    std::uint32_t scalars = 4'096;
    std::uint32_t images = 65'536;
    std::uint64_t image_bytes = 4ULL << 30;  ///< of one image
    std::uint64_t region_bytes = 1ULL << 48; ///< of one region: no device addresses more
    std::uint64_t arena_bytes = 1ULL << 40;  ///< of all arena regions together: they are allocated at load
    std::uint64_t local_bytes = 1ULL << 20;  ///< of one kernel node's work-group memory
};

struct EncodeOptions {
    std::uint64_t compress_above = 16ULL * 1024; ///< payload bytes; smaller ones are stored as they are
    int zstd_level = 3;
    const SigningKey* sign_with = nullptr; ///< null: unsigned
};

/// Deterministic: equal entries give equal bytes. A parameter's bytes under its slots are stored as zeros: every replay
/// overwrites them. REQUIRES: validate(entry.graph) holds, the key's guards digest is that of the guards, facts are
/// sorted by name, and the header's counts of nodes and images are the graph's (internal error otherwise).
[[nodiscard]] Result<Bytes> encode(const Entry& entry, const EncodeOptions& options = {});

/// The format version of these bytes; nullopt when they are too short, have another magic, or do not match the first
/// bytes' seal (formats before 5 have none). It tells a newer warmgraph's file from damage.
[[nodiscard]] std::optional<std::uint32_t> stored_format_version(ByteView prefix);

/// How many bytes from the start of a file hold the header: magic, version and sizes are checked.
/// `prefix` is at least k_envelope_bytes long, else corrupt.
[[nodiscard]] Result<std::uint64_t> header_extent(ByteView prefix, const Limits& limits = {});

/// The header alone, from the first header_extent bytes (more may follow): its digest is verified, the payload is
/// not looked at. `expected` is the folder's identity and the file name's digest: another key is `stale`.
[[nodiscard]] Result<EntryHeader> decode_header(ByteView prefix, const EntryKey& expected, const Limits& limits = {},
                                                const Trust& trust = {});

/// The whole entry, fully verified.
[[nodiscard]] Result<Entry> decode(ByteView bytes, const EntryKey& expected, const Limits& limits = {},
                                   const Trust& trust = {});

/// Does the graph mean anything: indices in range, edges ascending, slots inside their parameters and regions, node
/// and size caps, names sane, alignments powers of two, arena present where used. `corrupt` names the first fault.
[[nodiscard]] Result<void> validate(const Graph& graph, const Limits& limits = {});

inline constexpr std::size_t k_envelope_bytes = 352; ///< fixed part at the start of every file

} // namespace warmgraph::cachefmt
