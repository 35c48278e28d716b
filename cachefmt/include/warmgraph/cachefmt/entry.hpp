// One entry: what is stored for a function under one set of guards.
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
    tombstone = 2, ///< refused for good: `reason` and `difference` say why ("recompiled")
};

/// A program that a first call compiled.
struct CompiledWithin {
    Digest program; ///< its key: the name of what it was compiled to (precompile/)
    double ms = 0;
    /// A part of it alone: it was compiled before, and the call's launches had it compiled for more (PoCL).
    bool at_launch = false;
    bool operator==(const CompiledWithin&) const = default;
};

/// Recorded and shown, never compared.
struct EntryInfo {
    std::string created;      ///< ISO 8601
    std::string created_by;   ///< "warmgraph 0.1.0"
    double record_ms = 0;     ///< that recording took, after the call's own result
    double answer_ms = 0;     ///< what a hit saves: the function's first call as it is, compiling included
    std::string verification; ///< "bitwise (3 runs)"
    std::uint32_t node_count = 0;
    std::uint32_t image_count = 0;
    std::uint32_t unproven = 0; ///< parameter words taken for addresses by their range alone (adopted with one capture)
    /// How each scalar was proven: "position: proven at all 2,048 values", "scale: sampled at 412 values".
    std::vector<std::string> scalar_proofs;
    std::uint32_t library_constants = 0; ///< `__constant__` variables of libraries' images that are stored as they were
    /// Parameter words that differed between captures, follow nothing and are stored as zeros: nobody initialised them.
    std::uint32_t unused_words = 0;
    /// Within answer_ms, and a part of it: who loads such a program in the same start saves that part only once.
    std::vector<CompiledWithin> compiled{};
    std::string reason;                  ///< tombstone
    std::vector<std::string> difference; ///< tombstone
    bool operator==(const EntryInfo&) const = default;
};

/// 128 random bits. All entries that were recorded together have the same ones.
struct RecordingId {
    std::uint64_t high = 0, low = 0;
    auto operator<=>(const RecordingId&) const = default;
};
[[nodiscard]] RecordingId new_recording_id();
[[nodiscard]] std::string to_hex(const RecordingId& id); ///< 32 digits

/// The role of an entry in its recording.
enum class Part : std::uint8_t { whole = 0, forward = 1, backward = 2 };
/// "whole", "forward", "backward"
[[nodiscard]] std::string_view to_string(Part part) noexcept;

/// The entries of one recording are used together or not at all.
struct RecordingPart {
    RecordingId id;
    Part part = Part::whole;
    bool operator==(const RecordingPart&) const = default;
};

/// The part that is read and judged before any payload.
struct EntryHeader {
    EntryKey key;
    EntryKind kind = EntryKind::graph;
    Guards guards;
    EntryInfo info;
    std::string signed_by{};                  ///< of a decoded one: id of the known key that signed it. Not encoded
    std::optional<RecordingPart> recording{}; ///< none: the entry is used alone
    bool operator==(const EntryHeader&) const = default;
};

struct Entry {
    EntryHeader header;
    Graph graph; ///< empty for a tombstone
    bool operator==(const Entry&) const = default;
};

/// The fact that both entries of a pair of the C++ interface have: what forward saves for backward, as text.
inline constexpr const char* k_saved_fact = "pair.saved";
/// Whether the entry is one of such a pair's two.
[[nodiscard]] bool is_of_pair(const EntryHeader& header) noexcept;
/// `stale` for an entry that has forward and backward of a pair in one graph: nothing uses it any more.
[[nodiscard]] Result<void> check_not_joined(const EntryHeader& header);

/// SHA-256 over the must_match facts, tensors and values in a canonical form (names and lengths included).
[[nodiscard]] Digest guards_digest(const Guards& guards);

} // namespace warmgraph::cachefmt
