// Small pieces of text shared by messages, differences and the readable forms. Names may come from hostile files, so
// everything printed goes through printable().
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] std::string_view to_string(RegionKind kind) noexcept; ///< "arena"; "unknown" out of range
[[nodiscard]] std::string_view to_string(EntryKind kind) noexcept;
[[nodiscard]] std::string_view to_string(ParamKind kind) noexcept;
[[nodiscard]] std::string_view to_string(MemorySpace space) noexcept;        ///< "device", "host"
[[nodiscard]] std::string_view node_kind(const Node& node) noexcept;         ///< "kernel", "copy", "event record"
[[nodiscard]] std::string_view to_string(MemoryOperationKind kind) noexcept; ///< "wait_32"; "unknown" out of range

[[nodiscard]] std::string to_text(const Dim3& dim);                        ///< "4,1,1"
[[nodiscard]] std::string to_text(const Slot& slot, const Graph& graph);   ///< "kv + 1024"
[[nodiscard]] std::string to_text(const Param& param, const Graph& graph); ///< "token", "4 B 00000001", "local 128 B"
[[nodiscard]] std::string to_text(const EdgeData& data); ///< "plain", "programmatic", "programmatic from launch"
/// The value as its CUDA attribute reads it: "2,1,1" of a cluster dimension, "-5" of a priority, else bytes and slots.
[[nodiscard]] std::string to_text(const Attribute& attribute, const Graph& graph);
/// "wait until flag + 8 >= 1", "write 3 to flag", "barrier". Words of 64 bits say so.
[[nodiscard]] std::string to_text(const MemoryOperation& operation, const Graph& graph);
/// "frame = 7", "frame >= step + 1" of a wait.
[[nodiscard]] std::string to_text(const SemaphoreUse& use, SemaphoreAction action, const Graph& graph);
[[nodiscard]] std::string to_text(const Pitch& pitch);                                 ///< "512", "512/2048"
[[nodiscard]] std::string_view to_string(SemaphoreAction action) noexcept;             ///< "signal", "wait"
[[nodiscard]] std::string semaphore_text(std::uint32_t semaphore, const Graph& graph); ///< likewise
[[nodiscard]] std::string event_text(std::uint32_t event, const Graph& graph); ///< its name; "event 7" out of range
/// "1.0 KB", "4 rows of 256 B", "2 slices of 4 rows of 256 B".
[[nodiscard]] std::string box_size(std::uint64_t size, std::uint64_t rows, std::uint64_t slices);
[[nodiscard]] std::string node_name(const Node& node, std::size_t index); ///< "kernel rope (node 3)", "copy (node 4)"
[[nodiscard]] std::string hex(ByteView bytes, std::size_t most = 16);     ///< "0a0b…" cut after `most` bytes
[[nodiscard]] std::string human_size(std::uint64_t bytes); ///< "512 B", "41 KB", "1.2 MB": multiples of 1024
/// The value's bits as its type reads them: "17", "-1", "0.5", "true".
[[nodiscard]] std::string value_text(const ValueSpec& value);

} // namespace warmgraph::cachefmt
