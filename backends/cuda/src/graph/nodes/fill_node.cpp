#include "graph/nodes/fill_node.hpp"

#include <algorithm>
#include <cstring>

#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends::cuda {
Result<CUDA_MEMSET_NODE_PARAMS> to_native(const RawFill& fill)
{
    const std::size_t full = fill.pattern.size();
    const std::size_t width = full == 0 ? 0 : full <= 4 ? full : period(fill.pattern);
    if (width != 1 && width != 2 && width != 4)
        return fail(ErrorCode::unsupported,
                    "a memset node has elements of 1, 2 or 4 bytes, this fill's pattern has {}; fill with a kernel, or "
                    "in parts",
                    full);
    CUDA_MEMSET_NODE_PARAMS native{};
    native.dst = fill.destination.flat();
    native.elementSize = static_cast<unsigned int>(width);
    std::memcpy(&native.value, fill.pattern.data(), width);
    native.width = fill.size / width;
    native.height = fill.rows;
    native.pitch = fill.rows > 1 ? fill.pitch : 0;
    return native;
}

Result<RawWork> read_fill(const Core& core, CUgraphNode node)
{
    CUDA_MEMSET_NODE_PARAMS native{};
    auto got = core.driver->call("cuGraphMemsetNodeGetParams", core.driver->cuGraphMemsetNodeGetParams, node, &native);
    if (!got) return std::unexpected(got.error());
    if (native.width == 0 || native.height == 0) return RawEmpty{};
    if (native.elementSize != 1 && native.elementSize != 2 && native.elementSize != 4)
        return fail(ErrorCode::not_recordable, "the memset has elements of {} bytes, expected 1, 2 or 4",
                    native.elementSize);
    const ByteView value = std::as_bytes(std::span(&native.value, 1)).first(native.elementSize);
    return RawFill{Address::from_flat(native.dst), Bytes(value.begin(), value.end()), native.width * native.elementSize,
                   native.height, native.height > 1 ? native.pitch : 0};
}

Result<void> add(AddCall& call, const RawFill& fill)
{
    const auto native = to_native(fill);
    if (!native) return std::unexpected(native.error());
    return call("cuGraphAddMemsetNode", call.core.driver->cuGraphAddMemsetNode, &*native, call.core.context);
}

Result<void> change(const ChangeCall& call, RawFill& before, const RawFill& after)
{
    if (before == after) return {};
    if (auto checked = check_form(after); !checked) return checked;
    if (before.pattern.size() != after.pattern.size() || before.rows != after.rows)
        return fail(ErrorCode::invalid_argument,
                    "the fill changes its pattern's size or its rows; instantiate another graph");
    if (before.rows > 1 && (before.size != after.size || before.pitch != after.pitch))
        return fail(ErrorCode::unsupported, "the driver cannot change the box of a fill of several rows; instantiate "
                                            "another graph");
    const auto native = to_native(after);
    if (!native) return std::unexpected(native.error());
    auto set =
        changed_or_unsupported(call("cuGraphExecMemsetNodeSetParams", call.core.driver->cuGraphExecMemsetNodeSetParams,
                                    &*native, call.core.context));
    if (set) before = after;
    return set;
}

} // namespace warmgraph::backends::cuda
