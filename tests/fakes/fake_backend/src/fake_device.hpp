#pragma once

#include "fake_memory.hpp"
#include "fake_state.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/graph_builder.hpp"

namespace warmgraph::backends {

[[nodiscard]] DeviceInfo fake_device_info(const FakeState& state, std::uint16_t ordinal);

class FakeDevice final : public Device, private Compiler {
public:
    FakeDevice(std::shared_ptr<FakeState> state, std::uint16_t ordinal);

    [[nodiscard]] std::string id() const override { return m_info.id; }
    [[nodiscard]] std::string backend() const override { return "fake"; }
    [[nodiscard]] std::string name() const override { return m_info.name; }
    [[nodiscard]] std::uint16_t ordinal() const noexcept override { return m_ordinal; }
    [[nodiscard]] const DeviceLimits& limits() const noexcept override { return m_limits; }
    [[nodiscard]] std::vector<cachefmt::Fact> facts() const override;
    [[nodiscard]] std::string replay_mode() const override { return "runs each node at once (the fake)"; }

    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size) override;
    void release(const MemoryRef& memory) noexcept override { m_memory.release(memory); }
    [[nodiscard]] MemoryTally& tally() noexcept override { return m_memory.tally(); }
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size) override;
    [[nodiscard]] Result<void> upload(const Address& to, ByteView bytes) override;
    [[nodiscard]] Result<void> download(std::span<std::byte> to, const Address& from) override;

    [[nodiscard]] Compiler& compiler() override { return *this; }
    [[nodiscard]] Result<std::unique_ptr<Module>> load(ByteView image) override;
    [[nodiscard]] Result<std::unique_ptr<Stream>> create_stream() override;
    [[nodiscard]] Result<std::unique_ptr<GraphBuilder>> graph_builder(std::size_t nodes) override;

private:
    [[nodiscard]] Result<std::unique_ptr<Module>> compile(std::string_view source, std::string_view options) override;

    std::shared_ptr<FakeState> m_state;
    std::uint16_t m_ordinal;
    DeviceInfo m_info;
    DeviceLimits m_limits;
    FakeMemory m_memory;
};

} // namespace warmgraph::backends
