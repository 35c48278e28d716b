// Connects NodeFormat to a kind's own functions. Each kind's file includes this.
#pragma once

#include <type_traits>
#include <variant>

#include <entry_generated.h>

#include "flat_build.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {

template <class Work, class... All>
consteval std::size_t index_in(std::type_identity<std::variant<All...>>)
{
    std::size_t index = 0;
    static_cast<void>(((std::is_same_v<Work, All> || (++index, false)) || ...));
    return index;
}

/// `Kind` names the node's type (`Work`) and the schema's table (`Flat`). It has a static function on these types for
/// each function of NodeFormat; name() is optional, and to_flat() returns only the table.
template <class Kind>
class NodeFormatOf final : public NodeFormat {
    using Work = typename Kind::Work;
    using Flat = typename Kind::Flat;
    static constexpr flat::Work k_number = flat::WorkTraits<Flat>::enum_value;
    static_assert(static_cast<std::size_t>(k_number) == index_in<Work>(std::type_identity<Node>{}),
                  "a kind's number in the schema is its index in Node");

    static const Work& work(const Node& node) { return std::get<Work>(node); }
    static const Flat& table(const flat::Node& node) { return *node.work_as<Flat>(); }

public:
    [[nodiscard]] std::string_view kind(const Node& node) const noexcept override { return Kind::kind(work(node)); }
    [[nodiscard]] std::string name(const Node& node) const override
    {
        if constexpr (requires { Kind::name(work(node)); })
            return Kind::name(work(node));
        else
            return std::string{Kind::kind(work(node))};
    }
    void digest(Sha256& hash, const Node& node) const override { Kind::digest(hash, work(node)); }
    void compare(const NodeDifference& out, const Node& recorded, const Node& now) const override
    {
        Kind::compare(out, work(recorded), work(now));
    }
    [[nodiscard]] Result<void> validate(const Node& node, const Graph& graph, const Limits& limits) const override
    {
        return Kind::validate(work(node), graph, limits);
    }
    [[nodiscard]] std::uint64_t footprint(const Node& node) const noexcept override
    {
        return Kind::footprint(work(node));
    }
    [[nodiscard]] flatbuffers::Offset<flat::Node> to_flat(FlatBuilder& builder, const Node& node) const override
    {
        return flat::CreateNode(builder, k_number, Kind::to_flat(builder, work(node)).Union());
    }
    [[nodiscard]] Result<void> check_flat(const flat::Node& node, const Limits& limits) const override
    {
        return Kind::check_flat(table(node), limits);
    }
    [[nodiscard]] std::uint64_t flat_footprint(const flat::Node& node) const override
    {
        return Kind::flat_footprint(table(node));
    }
    [[nodiscard]] Node from_flat(const flat::Node& node) const override { return Kind::from_flat(table(node)); }
    void json(Json& out, const Node& node, const Graph& graph) const override { Kind::json(out, work(node), graph); }
    [[nodiscard]] NodeRow row(const Node& node, const Graph& graph) const override
    {
        return Kind::row(work(node), graph);
    }
    [[nodiscard]] std::vector<std::string> label(const Node& node, const Graph& graph) const override
    {
        return Kind::label(work(node), graph);
    }
};

/// The base for kinds without parts of variable length.
struct FixedSize {
    template <class Work>
    static std::uint64_t footprint(const Work&) noexcept
    {
        return 0;
    }
    template <class Flat>
    static Result<void> check_flat(const Flat&, const Limits&)
    {
        return {};
    }
    template <class Flat>
    static std::uint64_t flat_footprint(const Flat&)
    {
        return 0;
    }
};

} // namespace warmgraph::cachefmt
