#pragma once

#include "fake_memory.hpp"
#include "fake_module.hpp"
#include "warmgraph/backends/capture_session.hpp"
#include "warmgraph/backends/graph_builder.hpp"

namespace warmgraph::backends {

inline constexpr std::uint64_t k_fake_max_block = 1024;
inline constexpr std::uint64_t k_fake_local_memory = 48 * 1024;

/// Checks whether `work` could run. Shadows are treated like other addresses.
[[nodiscard]] Result<void> check_fake(const RawWork& work, const FakeState& state, const FakeMemory& memory);
[[nodiscard]] Result<void> run_fake(const RawWork& work, FakeMemory& memory);

class FakeStream final : public Stream {
public:
    FakeStream(FakeState& state, FakeMemory& memory) : m_state(state), m_memory(memory), m_count(state.streams) {}

    [[nodiscard]] Result<void> launch(const RawKernel& kernel) override { return enqueue("launch", kernel); }
    [[nodiscard]] Result<void> copy(const RawCopy& copy) override { return enqueue("copy", copy); }
    [[nodiscard]] Result<void> fill(const RawFill& fill) override { return enqueue("fill", fill); }
    [[nodiscard]] Result<void> check(const RawWork& work) override;
    [[nodiscard]] Result<std::shared_ptr<Event>> record_event() override;
    [[nodiscard]] Result<void> wait(const std::shared_ptr<Event>& event) override;
    [[nodiscard]] Result<void> synchronize() override;
    [[nodiscard]] Result<void> begin_capture() override;
    [[nodiscard]] Result<RawGraph> end_capture() override;
    [[nodiscard]] bool is_capturing() const noexcept override { return m_capture.is_active(); }

    [[nodiscard]] const FakeMemory& memory() const noexcept { return m_memory; }

private:
    [[nodiscard]] Result<void> enqueue(const char* entry, const RawWork& work);
    /// Returns the failure of a check, or an injected failure. During a capture, the capture remembers the failure.
    [[nodiscard]] Result<void> pass(Result<void> checked);

    FakeState& m_state;
    FakeMemory& m_memory;
    StreamCapture m_capture;
    LiveCount m_count;
};

class FakeBuilder final : public GraphBuilder {
public:
    FakeBuilder(FakeState& state, FakeMemory& memory, std::size_t nodes) : m_state(state), m_memory(memory)
    {
        m_nodes.reserve(nodes);
    }
    [[nodiscard]] Result<void> add(const RawNode& node) override;
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate() override;

private:
    FakeState& m_state;
    FakeMemory& m_memory;
    std::vector<RawWork> m_nodes;
};

class FakeExec final : public GraphExec {
public:
    FakeExec(FakeState& state, FakeMemory& memory, std::vector<RawWork> nodes);
    [[nodiscard]] Result<void> launch(Stream& stream) noexcept override;
    [[nodiscard]] Result<void> update(std::uint32_t node, const RawWork& work) noexcept override;

private:
    FakeState& m_state;
    FakeMemory& m_memory;
    std::vector<RawWork> m_nodes;
    LiveCount m_count;
};

} // namespace warmgraph::backends
