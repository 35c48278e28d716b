#include "replay_choice.hpp"

#include "warmgraph/base/process.hpp"

namespace warmgraph::backends::opencl {
namespace {

constexpr const char* k_variable = "WARMGRAPH_OPENCL_REPLAY";

/// The reason why the device's command buffers cannot be used; empty if they can.
std::string obstacle(const CommandBufferSupport& support)
{
    if (support.api) return {};
    if (support.version.empty()) return "the device has no cl_khr_command_buffer";
    return fmt::format(
        "cl_khr_command_buffer {} has other function signatures than the supported versions, 0.9.0 to 0.9.4",
        support.version);
}

} // namespace

Result<ReplayChoice> choose_replay(const CommandBufferSupport& support, bool is_pocl)
{
    const std::string wanted = environment(k_variable).value_or("auto");
    if (wanted == "enqueue")
        return ReplayChoice{ReplayMode::enqueue, fmt::format("re-enqueue (set by {})", k_variable)};
    if (wanted != "auto" && wanted != "command_buffer") {
        return fail(ErrorCode::invalid_argument, "{} is '{}', must be auto, command_buffer or enqueue", k_variable,
                    wanted);
    }
    if (const std::string why = obstacle(support); !why.empty())
        return ReplayChoice{ReplayMode::enqueue, fmt::format("re-enqueue ({})", why)};
    if (wanted == "command_buffer") {
        return ReplayChoice{ReplayMode::command_buffer,
                            fmt::format("command buffer {} (set by {}; graphs with branches are re-enqueued)",
                                        support.version, k_variable)};
    }
    if (is_pocl)
        return ReplayChoice{
            ReplayMode::enqueue,
            fmt::format("re-enqueue (cl_khr_command_buffer {} is available, but slower on PoCL)", support.version)};
    return ReplayChoice{ReplayMode::command_buffer,
                        fmt::format("command buffer {} (graphs with branches are re-enqueued)", support.version)};
}

} // namespace warmgraph::backends::opencl
