#include "fake_stream.hpp"

#include <algorithm>
#include <optional>

#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends {
namespace {

struct FakeEvent final : Event {
    explicit FakeEvent(FakeState& of) : state(of) {}
    Result<bool> is_done() override
    {
        if (point)
            return fail(ErrorCode::not_recordable, "an event that was recorded in a capture is never done: the work "
                                                   "before it is recorded, and does not run");
        if (auto entered = state.enter("event.is_done"); !entered) return std::unexpected(entered.error());
        return true;
    }

    FakeState& state;
    std::optional<CapturedPoint> point; ///< empty outside a capture, where work is done at once
};

Result<const FakeKernel*> kernel_of(const RawKernel& work)
{
    const auto* const module = dynamic_cast<const FakeModule*>(work.module);
    if (module == nullptr)
        return fail(ErrorCode::invalid_argument, "kernel '{}': no module of this backend", work.kernel);
    auto found = module->find(work.kernel);
    if (!found) return fail(ErrorCode::invalid_argument, "{}", found.error().message);
    return found;
}

Result<void> check_param(const RawParam& param, ParamKind expected, const FakeState& state, const FakeMemory& memory)
{
    if (param.kind != expected) return fail(ErrorCode::invalid_argument, "of another kind than the kernel takes");
    if (param.kind == ParamKind::value && param.value.size() != sizeof(std::int32_t)) {
        return fail(ErrorCode::invalid_argument, "a value of {} bytes, the kernel takes {}", param.value.size(),
                    sizeof(std::int32_t));
    }
    if (param.kind == ParamKind::local && (param.local_size == 0 || param.local_size > k_fake_local_memory)) {
        return fail(ErrorCode::invalid_argument, "{} bytes of local memory, from 1 to {} on this device",
                    param.local_size, k_fake_local_memory);
    }
    if (param.kind != ParamKind::memory) return {};
    if (param.address.offset % state.options.memory_alignment != 0) {
        return fail(ErrorCode::invalid_argument, "misaligned at offset {}: this device needs a multiple of {} bytes",
                    param.address.offset, state.options.memory_alignment);
    }
    return memory.check(param.address, 1);
}

Result<void> check_kernel(const RawKernel& work, const FakeState& state, const FakeMemory& memory)
{
    const auto kernel = kernel_of(work);
    if (!kernel) return std::unexpected(kernel.error());
    const auto& kinds = (*kernel)->params;
    if (kinds.size() != work.params.size()) {
        return fail(ErrorCode::invalid_argument, "kernel '{}': {} parameters given, the kernel takes {}", work.kernel,
                    work.params.size(), kinds.size());
    }
    std::uint64_t items = 1;
    for (const std::uint32_t size : work.block) items *= size;
    if (std::ranges::count(work.grid, 0U) + std::ranges::count(work.block, 0U) > 0 || items > k_fake_max_block) {
        return fail(ErrorCode::invalid_argument, "kernel '{}': a block of {} work-items, from 1 to {} on this device",
                    work.kernel, items, k_fake_max_block);
    }
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (auto checked = check_param(work.params[i], kinds[i], state, memory); !checked) {
            return within(fmt::format("kernel '{}': parameter {} is", work.kernel, i), checked.error());
        }
    }
    return {};
}

Result<void> run_kernel(const RawKernel& work, FakeMemory& memory)
{
    const auto kernel = kernel_of(work);
    if (!kernel) return std::unexpected(kernel.error());
    FakeArguments args;
    args.items = 1;
    for (std::size_t i = 0; i < 3; ++i) args.items *= std::uint64_t{work.grid[i]} * work.block[i];
    for (const RawParam& param : work.params) {
        if (param.kind == ParamKind::value) args.values.push_back(load<std::int32_t>(param.value));
        if (param.kind != ParamKind::memory) continue;
        const auto bytes = memory.rest(param.address);
        if (!bytes) return std::unexpected(bytes.error());
        args.memory.push_back(*bytes);
    }
    (*kernel)->run(args);
    return {};
}

Result<void> run_copy(const RawCopy& work, FakeMemory& memory)
{
    const auto source = memory.bytes(work.source, work.size);
    if (!source) return std::unexpected(source.error());
    const auto destination = memory.bytes(work.destination, work.size);
    if (!destination) return std::unexpected(destination.error());
    std::ranges::copy(*source, destination->begin());
    return {};
}

Result<void> run_fill(const RawFill& work, FakeMemory& memory)
{
    const auto destination = memory.bytes(work.destination, work.size);
    if (!destination) return std::unexpected(destination.error());
    for (std::size_t i = 0; i < destination->size(); ++i) (*destination)[i] = work.pattern[i % work.pattern.size()];
    return {};
}

} // namespace

Result<void> check_fake(const RawWork& work, const FakeState& state, const FakeMemory& memory)
{
    if (auto plain = check_plain(work); !plain) return plain;
    if (const auto* kernel = std::get_if<RawKernel>(&work)) return check_kernel(*kernel, state, memory);
    if (const auto* copy = std::get_if<RawCopy>(&work)) {
        if (auto checked = memory.check(copy->source, copy->size); !checked)
            return within("copy source", checked.error());
        if (auto checked = memory.check(copy->destination, copy->size); !checked)
            return within("copy destination", checked.error());
        return check_form(*copy);
    }
    if (const auto* fill = std::get_if<RawFill>(&work)) {
        if (auto checked = check_form(*fill); !checked) return checked;
        return memory.check(fill->destination, fill->size);
    }
    return {};
}

Result<void> run_fake(const RawWork& work, FakeMemory& memory)
{
    if (const auto* kernel = std::get_if<RawKernel>(&work)) return run_kernel(*kernel, memory);
    if (const auto* copy = std::get_if<RawCopy>(&work)) return run_copy(*copy, memory);
    if (const auto* fill = std::get_if<RawFill>(&work)) return run_fill(*fill, memory);
    return {};
}

Result<void> FakeStream::pass(Result<void> checked)
{
    if (!checked && is_capturing()) return m_capture.failed(std::move(checked.error()));
    return checked;
}

Result<void> FakeStream::enqueue(const char* entry, const RawWork& work)
{
    if (auto entered = pass(m_state.enter(entry)); !entered) return entered;
    if (auto checked = pass(check_fake(work, m_state, m_memory)); !checked) return checked;
    if (!is_capturing()) return run_fake(work, m_memory);
    return m_capture.add(work);
}

Result<void> FakeStream::check(const RawWork& work)
{
    if (auto entered = m_state.enter("stream.check"); !entered) return entered;
    return check_fake(work, m_state, m_memory);
}

Result<std::shared_ptr<Event>> FakeStream::record_event()
{
    if (auto entered = pass(m_state.enter("record_event")); !entered) return std::unexpected(entered.error());
    auto event = std::make_shared<FakeEvent>(m_state);
    if (is_capturing()) event->point = m_capture.point();
    return event;
}

Result<void> FakeStream::wait(const std::shared_ptr<Event>& event)
{
    if (auto entered = pass(m_state.enter("wait")); !entered) return entered;
    const auto* const ours = dynamic_cast<const FakeEvent*>(event.get());
    if (ours == nullptr)
        return pass(fail(ErrorCode::invalid_argument, "wait for an event that is null or of another device"));
    if (ours->point) return m_capture.wait(*ours->point);
    if (is_capturing()) return m_capture.refuse("wait for an event that was recorded outside the capture");
    return {};
}

Result<void> FakeStream::synchronize()
{
    if (is_capturing()) return m_capture.refuse("synchronize");
    return m_state.enter("synchronize");
}

Result<void> FakeStream::begin_capture()
{
    if (auto entered = pass(m_state.enter("begin_capture")); !entered) return entered;
    return m_capture.begin();
}

Result<RawGraph> FakeStream::end_capture()
{
    const auto entered = m_state.enter("end_capture");
    auto graph = m_capture.end(); // the capture ends even if this fails
    if (!entered) return std::unexpected(entered.error());
    return graph;
}

Result<void> FakeBuilder::add(const RawNode& node)
{
    if (auto checked = check_order(node, m_nodes.size()); !checked) return checked;
    if (auto checked = check_fake(node.work, m_state, m_memory); !checked)
        return within(fmt::format("instantiate node {}", m_nodes.size()), checked.error());
    m_nodes.push_back(node.work);
    return {};
}

Result<std::unique_ptr<GraphExec>> FakeBuilder::instantiate()
{
    if (auto entered = m_state.enter("instantiate"); !entered) return std::unexpected(entered.error());
    return std::make_unique<FakeExec>(m_state, m_memory, std::move(m_nodes));
}

FakeExec::FakeExec(FakeState& state, FakeMemory& memory, std::vector<RawWork> nodes)
    : m_state(state), m_memory(memory), m_nodes(std::move(nodes)), m_count(state.execs)
{
}

Result<void> FakeExec::launch(Stream& stream) noexcept
{
    if (auto entered = m_state.enter("exec.launch"); !entered) return entered;
    const auto* const ours = dynamic_cast<FakeStream*>(&stream);
    if (ours == nullptr || &ours->memory() != &m_memory)
        return fail(ErrorCode::invalid_argument, "launch of a graph in a stream of another device");
    if (ours->is_capturing()) return fail(ErrorCode::not_recordable, "launch of a graph in a stream that captures");
    for (const RawWork& work : m_nodes) {
        if (auto run = run_fake(work, m_memory); !run) return run;
    }
    return {};
}

Result<void> FakeExec::update(std::uint32_t node, const RawWork& work) noexcept
{
    if (auto entered = m_state.enter("exec.update"); !entered) return entered;
    if (node >= m_nodes.size())
        return fail(ErrorCode::invalid_argument, "update of node {}, the graph has {}", node, m_nodes.size());
    if (auto checked = check_update(m_nodes[node], work); !checked) return checked;
    if (auto checked = check_fake(work, m_state, m_memory); !checked) return checked;
    m_nodes[node] = work;
    return {};
}

} // namespace warmgraph::backends
