// The JSON of one variant in the report: header, inputs and outputs, code and graph.
#pragma once

#include "report/gather.hpp"

namespace warmgraph::tool {

/// Counts the drawn boxes, so use one object for a whole report.
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
    std::size_t m_drawn = 0; ///< boxes so far
};

} // namespace warmgraph::tool
