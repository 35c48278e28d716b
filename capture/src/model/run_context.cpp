#include "warmgraph/capture/run_context.hpp"

#include <utility>

namespace warmgraph {

namespace {
thread_local RunContext* t_run = nullptr;
} // namespace

RunContext* current_run() noexcept { return t_run; }

RunScope::RunScope(RunContext& run) noexcept : m_outer(std::exchange(t_run, &run)) {}
RunScope::~RunScope() { t_run = m_outer; }

Result<void> refuse_while_capturing(std::string_view call, std::string_view cure)
{
    if (t_run == nullptr || !t_run->capturing) return {};
    Error error{ErrorCode::not_recordable,
                fmt::format("'{}' calls {} while it is being captured: {}", t_run->function, call, cure)};
    if (!t_run->refusal) t_run->refusal = error;
    return std::unexpected(error);
}

} // namespace warmgraph
