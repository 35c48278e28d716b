// One variant in the report: its header, what it takes and gives, its code and its graph.
#pragma once

#include "report/gather.hpp"

namespace warmgraph::tool {

/// Counts what it draws, so that one serves a whole report.
class VariantJson {
public:
    VariantJson(const Context& context, std::filesystem::path root, const DrawingLimits& limits)
        : m_context(context), m_root(std::move(root)), m_limits(limits)
    {
    }

    [[nodiscard]] Json json(const cachefmt::FunctionKey& function, const store::Variant& variant);

private:
    [[nodiscard]] Json graph_json(const cachefmt::Graph& graph);

    const Context& m_context;
    std::filesystem::path m_root;
    DrawingLimits m_limits;
    std::size_t m_drawn = 0; ///< boxes
};

} // namespace warmgraph::tool
