#include "warmgraph/backends/work_checks.hpp"

#include <algorithm>

namespace warmgraph::backends {
namespace {

Result<void> check_kernel_update(const RawKernel& before, const RawKernel& after)
{
    const auto differs = [&](std::string_view what) {
        return fail(ErrorCode::invalid_argument,
                    "update of kernel '{}' changes its {}; instantiate another graph for that", before.kernel, what);
    };
    if (before.module != after.module || before.kernel != after.kernel) return differs("kernel");
    if (before.grid != after.grid || before.block != after.block) return differs("dimensions");
    if (before.params.size() != after.params.size()) return differs("number of parameters");
    for (std::size_t i = 0; i < before.params.size(); ++i) {
        const RawParam &old = before.params[i], &now = after.params[i];
        if (old.kind != now.kind || old.value.size() != now.value.size() || old.local_size != now.local_size) {
            return differs("parameters' kinds or sizes");
        }
    }
    return {};
}

} // namespace

Result<void> check_form(const RawCopy& work)
{
    if (work.size == 0) return fail(ErrorCode::invalid_argument, "copy of 0 bytes");
    const bool overlaps = work.source.base == work.destination.base &&
                          work.source.offset < work.destination.offset + work.size &&
                          work.destination.offset < work.source.offset + work.size;
    if (overlaps)
        return fail(ErrorCode::invalid_argument, "copy of {} bytes: source and destination overlap", work.size);
    return {};
}

Result<void> check_form(const RawFill& work)
{
    const std::size_t width = work.pattern.size();
    if (width == 0 || width > 16 || (width & (width - 1)) != 0) {
        return fail(ErrorCode::invalid_argument, "fill pattern of {} bytes, must be 1, 2, 4, 8 or 16", width);
    }
    if (work.size == 0 || work.size % width != 0 || work.destination.offset % width != 0) {
        return fail(ErrorCode::invalid_argument,
                    "fill of {} bytes at offset {}: both must be multiples of the pattern's {} bytes, and the size "
                    "must not be 0",
                    work.size, work.destination.offset, width);
    }
    return {};
}

Result<void> check_plain(const RawKernel& work)
{
    const auto refused = [&](std::string_view what) {
        return fail(ErrorCode::unsupported, "kernel '{}' has {}, which this backend does not have: leave it out",
                    work.kernel, what);
    };
    if (work.shared_bytes != 0)
        return refused(
            fmt::format("{} bytes of dynamic shared memory (this backend takes a LocalMemory argument instead)",
                        work.shared_bytes));
    if (!work.attributes.empty()) return refused(fmt::format("the launch attribute {}", work.attributes.front().id));
    if (!work.function_attributes.empty())
        return refused(fmt::format("the function attribute {}", work.function_attributes.front().id));
    if (work.packed) return refused("a packed parameter buffer");
    return {};
}

Result<void> check_plain(const RawCopy& work)
{
    if (work.rows == 1 && work.slices == 1 && work.source_space == MemorySpace::device &&
        work.destination_space == MemorySpace::device)
        return {};
    return fail(ErrorCode::unsupported,
                "copy of {} bytes x {} rows x {} slices: this backend copies only contiguous ranges of device memory",
                work.size, work.rows, work.slices);
}

Result<void> check_plain(const RawFill& work)
{
    if (work.rows == 1) return {};
    return fail(ErrorCode::unsupported, "fill of {} bytes x {} rows: this backend fills only contiguous ranges",
                work.size, work.rows);
}

Result<void> check_plain(const RawWork& work)
{
    if (std::holds_alternative<RawEmpty>(work)) return {};
    if (const auto* kernel = std::get_if<RawKernel>(&work)) return check_plain(*kernel);
    if (const auto* copy = std::get_if<RawCopy>(&work)) return check_plain(*copy);
    if (const auto* fill = std::get_if<RawFill>(&work)) return check_plain(*fill);
    return fail(ErrorCode::unsupported, "this backend has no {} nodes", kind_of(work).family);
}

Result<void> check_update(const RawMemoryOperations& before, const RawMemoryOperations& after)
{
    const auto same = [](const RawMemoryOperation& a, const RawMemoryOperation& b) {
        return a.kind == b.kind && a.flags == b.flags;
    };
    if (std::ranges::equal(before.operations, after.operations, same)) return {};
    return fail(ErrorCode::invalid_argument,
                "update changes the number, kinds or flags of memory operations; instantiate another graph for that");
}

Result<void> check_update(const RawSemaphores& before, const RawSemaphores& after)
{
    if (before.action == after.action && before.uses.size() == after.uses.size()) return {};
    return fail(
        ErrorCode::invalid_argument,
        "update changes the number of semaphores, or changes a wait to a signal; instantiate another graph for that");
}

Result<void> check_update(const RawWork& before, const RawWork& after)
{
    if (before.index() != after.index()) {
        return fail(ErrorCode::invalid_argument,
                    "update changes the kind of a node; instantiate another graph for that");
    }
    if (const auto* kernel = std::get_if<RawKernel>(&before))
        return check_kernel_update(*kernel, std::get<RawKernel>(after));
    if (const auto* batch = std::get_if<RawMemoryOperations>(&before))
        return check_update(*batch, std::get<RawMemoryOperations>(after));
    if (const auto* semaphores = std::get_if<RawSemaphores>(&before))
        return check_update(*semaphores, std::get<RawSemaphores>(after));
    return {};
}

Result<void> check_order(const RawNode& node, std::size_t index)
{
    for (const std::uint32_t before : node.dependencies) {
        if (before >= index)
            return fail(ErrorCode::invalid_argument, "node {} depends on node {}, which is not an earlier node", index,
                        before);
    }
    return {};
}

} // namespace warmgraph::backends
