#include "warmgraph/call/declaration.hpp"

#include "warmgraph/capture/run_context.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

void refuse_inside_itself(const std::string& function, std::string_view what)
{
    const RunContext* const running = current_run();
    if (running == nullptr || running->function != function) return;
    raise({ErrorCode::invalid_argument,
           fmt::format("'{}' is {} inside its own callable: do it before or after the call", function, what)});
}

void refuse_nested(const std::string& function)
{
    if (const RunContext* const running = current_run())
        raise({ErrorCode::invalid_argument,
               fmt::format("'{}' is called inside '{}': enqueue its work there instead", function, running->function)});
}

} // namespace warmgraph
