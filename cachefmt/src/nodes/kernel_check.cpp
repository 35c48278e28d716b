#include "nodes/kernel_check.hpp"

#include <optional>

#include "cuda_names.hpp"
#include "describe.hpp"
#include "validate_slot.hpp"
#include "validate_symbol.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::uint64_t k_block_max = 1ULL << 20; // work-items of a group; devices allow 1,024 to 8,192
constexpr std::uint64_t k_grid_max = 1ULL << 40;  // groups; with k_block_max the product stays in 64 bits

/// The product of the three numbers; nullopt if one is 0 or the product is over `limit`.
std::optional<std::uint64_t> product(const Dim3& dim, std::uint64_t limit)
{
    std::uint64_t total = 1;
    for (const std::uint32_t extent : dim) {
        if (extent == 0 || total > limit / extent) return std::nullopt;
        total *= extent;
    }
    return total;
}

class KernelCheck {
public:
    KernelCheck(const KernelNode& kernel, const Graph& graph, const Limits& limits)
        : m_kernel(kernel), m_graph(graph), m_limits(limits)
    {
    }

    [[nodiscard]] Result<void> launch() const;
    [[nodiscard]] Result<void> params() const;
    [[nodiscard]] Result<void> attributes() const;
    [[nodiscard]] Result<void> function_attributes() const;

private:
    [[nodiscard]] Result<void> param(const Param& param) const;
    [[nodiscard]] Result<void> local_param(const Param& param) const;
    [[nodiscard]] Result<void> memory_param(const Param& param) const;
    [[nodiscard]] Result<void> attribute(const Attribute& attribute) const;

    const KernelNode& m_kernel;
    const Graph& m_graph;
    const Limits& m_limits;
};

Result<void> KernelCheck::launch() const
{
    if (auto ok = validate_symbol("kernel name", m_kernel.kernel, k_symbol_max); !ok) return ok;
    if (m_kernel.image >= m_graph.images.size())
        return fail(ErrorCode::corrupt, "image {} is out of range, the graph has {}", m_kernel.image,
                    m_graph.images.size());
    if (!product(m_kernel.grid, k_grid_max))
        return fail(ErrorCode::corrupt, "grid {} has a zero or more than {} groups", to_text(m_kernel.grid),
                    k_grid_max);
    if (!product(m_kernel.block, k_block_max))
        return fail(ErrorCode::corrupt, "block {} has a zero or more than {} work-items", to_text(m_kernel.block),
                    k_block_max);
    return {};
}

Result<void> KernelCheck::params() const
{
    const std::vector<Param>& params = m_kernel.params;
    if (params.size() > m_limits.params_per_node)
        return fail(ErrorCode::corrupt, "{} parameters are over the limit of {}", params.size(),
                    m_limits.params_per_node);
    if (m_kernel.packed && (params.size() != 1 || params[0].kind != ParamKind::value))
        return fail(ErrorCode::corrupt, "packed parameters must be one value, but there are {}, and the first is {}",
                    params.size(), params.empty() ? "missing" : to_string(params[0].kind));
    std::uint64_t param_bytes = 0;
    std::uint64_t local_bytes = m_kernel.shared_bytes;
    for (std::size_t i = 0; i < params.size(); ++i) {
        if (auto ok = param(params[i]); !ok) return within(fmt::format("parameter {}", i), std::move(ok.error()));
        param_bytes += params[i].kind == ParamKind::memory ? sizeof(std::uint64_t) : params[i].value.size();
        local_bytes += params[i].local_size; // each is below 2^20: no overflow
    }
    if (param_bytes > m_limits.param_bytes)
        return fail(ErrorCode::corrupt, "parameters take {} bytes, over the limit of {}", param_bytes,
                    m_limits.param_bytes);
    if (local_bytes > m_limits.local_bytes)
        return fail(ErrorCode::corrupt, "work-group memory takes {} bytes, over the limit of {}", local_bytes,
                    m_limits.local_bytes);
    return {};
}

Result<void> KernelCheck::param(const Param& param) const
{
    if (param.kind > ParamKind::local)
        return fail(ErrorCode::corrupt, "kind {} is unknown", static_cast<int>(param.kind));
    if (param.kind == ParamKind::local) return local_param(param);
    if (param.local_size != 0)
        return fail(ErrorCode::corrupt, "a {} parameter asks for {} bytes of work-group memory", to_string(param.kind),
                    param.local_size);
    if (param.kind == ParamKind::memory) return memory_param(param);
    if (param.value.empty()) return fail(ErrorCode::corrupt, "a value parameter has no bytes");
    return validate_slots("parameter", param.value, param.slots, m_graph);
}

Result<void> KernelCheck::local_param(const Param& param) const
{
    if (!param.value.empty() || !param.slots.empty())
        return fail(ErrorCode::corrupt, "work-group memory has no bytes and no slots");
    if (param.local_size == 0 || param.local_size > m_limits.local_bytes)
        return fail(ErrorCode::corrupt, "work-group memory of {} bytes, expected 1 to {}", param.local_size,
                    m_limits.local_bytes);
    return {};
}

Result<void> KernelCheck::memory_param(const Param& param) const
{
    if (!param.value.empty()) return fail(ErrorCode::corrupt, "a memory parameter has no bytes");
    if (param.slots.size() != 1)
        return fail(ErrorCode::corrupt, "a memory parameter has one region slot, this one has {} slots",
                    param.slots.size());
    if (param.slots[0].kind != SlotKind::region || param.slots[0].offset != 0)
        return fail(ErrorCode::corrupt, "a memory parameter's slot is a region at offset 0");
    return validate_slot(param.slots[0], Reach::inside, m_graph);
}

Result<void> KernelCheck::attributes() const
{
    const std::vector<Attribute>& all = m_kernel.attributes;
    if (all.size() > m_limits.attributes_per_node)
        return fail(ErrorCode::corrupt, "{} attributes are over the limit of {}", all.size(),
                    m_limits.attributes_per_node);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0 && all[i - 1].id >= all[i].id)
            return fail(ErrorCode::corrupt, "attribute {} is repeated or out of order", all[i].id);
        if (auto ok = attribute(all[i]); !ok) return within(launch_attribute_name(all[i].id), std::move(ok.error()));
    }
    return {};
}

Result<void> KernelCheck::attribute(const Attribute& attribute) const
{
    if (attribute.value.empty() || attribute.value.size() > m_limits.attribute_bytes)
        return fail(ErrorCode::corrupt, "value has {} bytes, expected 1 to {}", attribute.value.size(),
                    m_limits.attribute_bytes);
    return validate_slots("attribute", attribute.value, attribute.slots, m_graph);
}

Result<void> KernelCheck::function_attributes() const
{
    const std::vector<FunctionAttribute>& all = m_kernel.function_attributes;
    if (all.size() > m_limits.attributes_per_node)
        return fail(ErrorCode::corrupt, "{} function attributes are over the limit of {}", all.size(),
                    m_limits.attributes_per_node);
    for (std::size_t i = 1; i < all.size(); ++i)
        if (all[i - 1].id >= all[i].id)
            return fail(ErrorCode::corrupt, "function attribute {} is repeated or out of order", all[i].id);
    return {};
}

} // namespace

Result<void> check_kernel(const KernelNode& kernel, const Graph& graph, const Limits& limits)
{
    const KernelCheck check{kernel, graph, limits};
    auto ok = check.launch();
    if (ok) ok = check.params();
    if (ok) ok = check.attributes();
    if (ok) ok = check.function_attributes();
    return ok;
}

} // namespace warmgraph::cachefmt
