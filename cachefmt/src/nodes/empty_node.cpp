// The node without work, which has no table in the schema.
#include "flat_build.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
namespace {

class EmptyFormat final : public NodeFormat {
public:
    std::string_view kind(const Node&) const noexcept override { return "empty"; }
    std::string name(const Node&) const override { return "empty"; }
    void digest(Sha256&, const Node&) const override {}
    void compare(const NodeDifference&, const Node&, const Node&) const override {}
    Result<void> validate(const Node&, const Graph&, const Limits&) const override { return {}; }
    std::uint64_t footprint(const Node&) const noexcept override { return 0; }
    flatbuffers::Offset<flat::Node> to_flat(FlatBuilder& builder, const Node&) const override
    {
        return flat::CreateNode(builder);
    }
    Result<void> check_flat(const flat::Node&, const Limits&) const override { return {}; }
    std::uint64_t flat_footprint(const flat::Node&) const override { return 0; }
    Node from_flat(const flat::Node&) const override { return EmptyNode{}; }
    void json(Json&, const Node&, const Graph&) const override {}
    NodeRow row(const Node&, const Graph&) const override { return {}; }
    std::vector<std::string> label(const Node&, const Graph&) const override { return {"empty"}; }
};

} // namespace

const NodeFormat& format_of(std::type_identity<EmptyNode>) noexcept
{
    static const EmptyFormat format;
    return format;
}

} // namespace warmgraph::cachefmt
