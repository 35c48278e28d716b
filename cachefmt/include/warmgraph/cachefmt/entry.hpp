// One entry: the graph and header that are stored for a function under one set of guards.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::cachefmt {

enum class EntryKind : std::uint8_t {
    graph = 1,
    tombstone = 2, ///< the graph was refused for good: `reason` and `difference` say why ("recompiled")
};

/// A program that a first call compiled.
struct CompiledWithin {
    Digest program; ///< the key of the compiled program (precompile/)
    double ms = 0;
    /// True if the program had been compiled before, and the call's launches compiled more of it (PoCL).
    bool at_launch = false;
    bool operator==(const CompiledWithin&) const = default;
};

/// Information that is recorded and shown, but never compared.
struct EntryInfo {
    std::string created;      ///< ISO 8601
    std::string created_by;   ///< "warmgraph 0.1.0"
    double record_ms = 0;     ///< time that recording took, after the call returned its own result
    double answer_ms = 0;     ///< time that a hit saves: the first call without the cache, with compiling
    std::string verification; ///< "bitwise (3 runs)"
    std::uint32_t node_count = 0;
    std::uint32_t image_count = 0;
    std::uint32_t unproven = 0; ///< words that count as addresses only by their range (adopted with one capture)
    /// The proof of each scalar: "position: proven at all 2,048 values", "scale: sampled at 412 values".
    std::vector<std::string> scalar_proofs;
    std::uint32_t library_constants = 0; ///< `__constant__` variables of libraries' images whose contents are stored
    /// Parameter words that differed between captures and follow no input: uninitialised memory, stored as zeros.
    std::uint32_t unused_words = 0;
    /// The programs that the first call compiled. Their times are part of answer_ms. A start that loads one program for
    /// several entries saves that program's time only once.
    std::vector<CompiledWithin> compiled{};
    std::string reason;                  ///< only for a tombstone
    std::vector<std::string> difference; ///< only for a tombstone
    bool operator==(const EntryInfo&) const = default;
};

/// 128 random bits that all entries of one recording share.
struct RecordingId {
    std::uint64_t high = 0, low = 0;
    auto operator<=>(const RecordingId&) const = default;
};
[[nodiscard]] RecordingId new_recording_id();
[[nodiscard]] std::string to_hex(const RecordingId& id); ///< 32 digits

/// The role of an entry in its recording.
enum class Part : std::uint8_t { whole = 0, forward = 1, backward = 2 };
/// Returns "whole", "forward" or "backward".
[[nodiscard]] std::string_view to_string(Part part) noexcept;

/// The entries of one recording are used together or not at all.
struct RecordingPart {
    RecordingId id;
    Part part = Part::whole;
    bool operator==(const RecordingPart&) const = default;
};

/// The first part of an entry, which is read and checked before any payload.
struct EntryHeader {
    EntryKey key;
    EntryKind kind = EntryKind::graph;
    Guards guards;
    EntryInfo info;
    std::string signed_by{}; ///< after decoding: id of the known key that signed the entry. Not encoded
    std::optional<RecordingPart> recording{}; ///< empty: the entry is used alone
    bool operator==(const EntryHeader&) const = default;
};

struct Entry {
    EntryHeader header;
    Graph graph; ///< empty for a tombstone
    bool operator==(const Entry&) const = default;
};

/// The fact that both entries of a C++ pair have: the values that forward saves for backward, as text.
inline constexpr const char* k_saved_fact = "pair.saved";
/// True if the entry is one of the two entries of a C++ pair.
[[nodiscard]] bool is_of_pair(const EntryHeader& header) noexcept;
/// Returns `stale` for an entry with forward and backward of a pair in one graph, an old form that is no longer used.
[[nodiscard]] Result<void> check_not_joined(const EntryHeader& header);

/// SHA-256 over the must_match facts, tensors and values in a canonical form (names and lengths included).
[[nodiscard]] Digest guards_digest(const Guards& guards);

} // namespace warmgraph::cachefmt
