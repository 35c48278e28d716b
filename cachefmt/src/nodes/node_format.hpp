// The interface between the format and a kind of node, and the list of kinds. Each kind has its own file here. No other
// code in cachefmt depends on the kind of a node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "json_keys.hpp"
#include "node_difference.hpp"
#include "warmgraph/cachefmt/codec.hpp"

namespace flatbuffers {
template <class T>
struct Offset;
} // namespace flatbuffers

namespace warmgraph::cachefmt {

namespace flat {
struct Node;
} // namespace flat

struct FlatBuilder;

/// A node's cells in the table of `warmgraph show`.
struct NodeRow {
    std::optional<std::string> what{}; ///< empty: show the kind, in brackets
    std::string grid = "-";
    std::string block = "-";
    std::string parameters{};
};

/// Operations on one kind of node. REQUIRES: nodes passed to it are of this kind.
class NodeFormat {
public:
    NodeFormat() = default;
    NodeFormat(const NodeFormat&) = delete;
    NodeFormat& operator=(const NodeFormat&) = delete;

    /// The kind's name, e.g. "copy", "event record".
    [[nodiscard]] virtual std::string_view kind(const Node& node) const noexcept = 0;
    /// The kind, with the node's own name if it has one: "kernel rope".
    [[nodiscard]] virtual std::string name(const Node& node) const = 0;

    /// Hashes the parts of a node that count when graphs are compared; compare() must have a line for each of them.
    virtual void digest(Sha256& hash, const Node& node) const = 0;
    virtual void compare(const NodeDifference& out, const Node& recorded, const Node& now) const = 0;

    /// Checks the node's meaning. Messages start with the fault; the free validate() puts the node's name in front.
    [[nodiscard]] virtual Result<void> validate(const Node& node, const Graph& graph, const Limits& limits) const = 0;
    /// Memory of the node in bytes, beyond sizeof(Node).
    [[nodiscard]] virtual std::uint64_t footprint(const Node& node) const noexcept = 0;

    [[nodiscard]] virtual flatbuffers::Offset<flat::Node> to_flat(FlatBuilder& builder, const Node& node) const = 0;
    /// Checks the node's counts against the limits. Call this and flat_footprint() before from_flat().
    [[nodiscard]] virtual Result<void> check_flat(const flat::Node& node, const Limits& limits) const = 0;
    /// Returns the result of footprint() before the node is built.
    [[nodiscard]] virtual std::uint64_t flat_footprint(const flat::Node& node) const = 0;
    [[nodiscard]] virtual Node from_flat(const flat::Node& node) const = 0;

    /// Sets the JSON keys that only this kind of node has.
    virtual void json(Json& out, const Node& node, const Graph& graph) const = 0;
    [[nodiscard]] virtual NodeRow row(const Node& node, const Graph& graph) const = 0;
    /// The lines of the node's box in the drawing, without quoting.
    [[nodiscard]] virtual std::vector<std::string> label(const Node& node, const Graph& graph) const = 0;

protected:
    ~NodeFormat() = default;
};

// The list of kinds: one function for each alternative of Node. The file of each kind defines its function.
[[nodiscard]] const NodeFormat& format_of(std::type_identity<EmptyNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<KernelNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<CopyNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<FillNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<EventRecordNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<EventWaitNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<HostNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<MemoryOperationsNode>) noexcept;
[[nodiscard]] const NodeFormat& format_of(std::type_identity<SemaphoresNode>) noexcept;

[[nodiscard]] const NodeFormat& format_of(const Node& node) noexcept;
/// REQUIRES: the kind is known (check_counts).
[[nodiscard]] const NodeFormat& format_of(const flat::Node& node) noexcept;

} // namespace warmgraph::cachefmt
