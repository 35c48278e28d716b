#include "nodes/node_format.hpp"

#include <array>
#include <type_traits>

#include <entry_generated.h>

namespace warmgraph::cachefmt {
namespace {

template <class... Work>
const NodeFormat& format_at(std::size_t index, std::type_identity<std::variant<Work...>>) noexcept
{
    static const std::array k_formats{&format_of(std::type_identity<Work>{})...};
    return *k_formats[index];
}

} // namespace

const NodeFormat& format_of(const Node& node) noexcept { return format_at(node.index(), std::type_identity<Node>{}); }

const NodeFormat& format_of(const flat::Node& node) noexcept
{
    // node_format_of.hpp checks that each alternative's index is its number in the schema.
    static_assert(static_cast<std::size_t>(flat::Work::MAX) + 1 == std::variant_size_v<Node>);
    return format_at(static_cast<std::size_t>(node.work_type()), std::type_identity<Node>{});
}

} // namespace warmgraph::cachefmt
