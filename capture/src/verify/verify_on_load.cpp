#include "warmgraph/capture/verify_on_load.hpp"

#include "verify/verification.hpp"

namespace warmgraph {

Result<void> verify_restored(const Subject& subject, const Frame& frame, replay::Executable& executable, Phases& phases)
{
    auto stream = subject.device->create_stream();
    if (!stream) return std::unexpected(stream.error());
    const std::shared_ptr<backends::Stream> own{std::move(*stream)};
    auto trial = TrialMemory::create(subject.device, subject.interface, frame);
    if (!trial) return std::unexpected(trial.error());

    RunContext context;
    context.function = subject.name;
    context.phases = &phases;
    ScratchPool scratch{subject.device, ScratchPool::Kind::memory};
    TrialRun itself{subject, frame, **trial, scratch, own, context};
    Spread spread{subject.interface, region_types(frame)};
    TrialReplay replay{*subject.device, *own, **trial, subject.handles};
    auto verified = learn_spread(spread, [&](std::size_t i) { return itself.run(i, frame.scalars); });
    if (verified) verified = replay.accept_all(executable, frame.scalars, spread);
    if (auto intact = replay.check_caller_memory(); !intact) return intact;
    return verified;
}

} // namespace warmgraph
