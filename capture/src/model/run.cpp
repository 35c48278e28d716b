#include "warmgraph/capture/run.hpp"

namespace warmgraph {

Result<backends::RawGraph> captured_run(const CaptureTarget& target, const RunInputs& inputs, ScratchPool& scratch,
                                        const std::shared_ptr<backends::Stream>& stream, RunContext& context)
{
    if (auto begun = stream->begin_capture(); !begun) return std::unexpected(begun.error());
    context.capturing = true;
    context.refusal.reset();
    auto ran = target.run(inputs, scratch, stream, context);
    context.capturing = false;
    auto graph = stream->end_capture();
    if (context.refusal) return std::unexpected(*context.refusal);
    if (!ran) return std::unexpected(ran.error());
    return graph;
}

} // namespace warmgraph
