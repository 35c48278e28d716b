// All that the format has to know about a kind of node, and the list of the kinds. A kind's own file here has the rest;
// nowhere else in cachefmt is one told from another.
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
    std::optional<std::string> what{}; ///< none: the kind, in brackets
    std::string grid = "-";
    std::string block = "-";
    std::string parameters{};
};

/// REQUIRES: nodes passed to it are of its kind.
class NodeFormat {
public:
    NodeFormat() = default;
    NodeFormat(const NodeFormat&) = delete;
    NodeFormat& operator=(const NodeFormat&) = delete;

    /// "copy", "event record"
    [[nodiscard]] virtual std::string_view kind(const Node& node) const noexcept = 0;
    /// The kind, and the node's own name where it has one: "kernel rope".
    [[nodiscard]] virtual std::string name(const Node& node) const = 0;

    /// What counts when graphs are compared, in the digest's canonical form; compare() has a line for each part of it.
    virtual void digest(Sha256& hash, const Node& node) const = 0;
    virtual void compare(const NodeDifference& out, const Node& recorded, const Node& now) const = 0;

    /// Does the node mean anything. Messages start with what is wrong; validate() puts the node's name in front.
    [[nodiscard]] virtual Result<void> validate(const Node& node, const Graph& graph, const Limits& limits) const = 0;
    /// Bytes of memory beyond sizeof(Node).
    [[nodiscard]] virtual std::uint64_t footprint(const Node& node) const noexcept = 0;

    [[nodiscard]] virtual flatbuffers::Offset<flat::Node> to_flat(FlatBuilder& builder, const Node& node) const = 0;
    /// The limits on what the node has many of. It and flat_footprint() come before from_flat().
    [[nodiscard]] virtual Result<void> check_flat(const flat::Node& node, const Limits& limits) const = 0;
    /// What footprint() will say.
    [[nodiscard]] virtual std::uint64_t flat_footprint(const flat::Node& node) const = 0;
    [[nodiscard]] virtual Node from_flat(const flat::Node& node) const = 0;

    /// Puts the kind's own keys.
    virtual void json(Json& out, const Node& node, const Graph& graph) const = 0;
    [[nodiscard]] virtual NodeRow row(const Node& node, const Graph& graph) const = 0;
    /// The lines in its box of the drawing, not yet quoted.
    [[nodiscard]] virtual std::vector<std::string> label(const Node& node, const Graph& graph) const = 0;

protected:
    ~NodeFormat() = default;
};

// The list: a line for each alternative of Node, whose file defines it.
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
