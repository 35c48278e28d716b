#include "fake_device.hpp"

#include <algorithm>

#include "fake_module.hpp"
#include "fake_stream.hpp"

namespace warmgraph::backends {

DeviceInfo fake_device_info(const FakeState& state, std::uint16_t ordinal)
{
    return {fmt::format("fake:{}", ordinal), fmt::format("Fake Accelerator {}", ordinal),
            fmt::format("host memory, driver {}", state.options.driver_version)};
}

FakeDevice::FakeDevice(std::shared_ptr<FakeState> state, std::uint16_t ordinal)
    : m_state(std::move(state)),
      m_ordinal(ordinal),
      m_info(fake_device_info(*m_state, ordinal)),
      m_limits{m_state->options.memory_alignment, k_fake_max_block, k_fake_local_memory, m_state->options.memory},
      m_memory(*m_state)
{
}

std::vector<cachefmt::Fact> FakeDevice::facts() const
{
    using cachefmt::Role;
    const FakeOptions& options = m_state->options;
    return {
        {"backend", "fake", Role::must_match},
        {"device.architecture", options.architecture, Role::must_match},
        {"device.local_memory", fmt::format("{}", k_fake_local_memory), Role::must_match},
        {"device.memory_alignment", fmt::format("{}", options.memory_alignment), Role::must_match},
        {"device.name", m_info.name, Role::advisory},
        {"device.partition", "none", Role::must_match},
        {"device.units", "1", Role::must_match},
        {"driver.version", options.driver_version, Role::must_match},
        {"runtime.version", options.runtime_version, Role::must_match},
    };
}

Result<MemoryRef> FakeDevice::allocate(std::uint64_t size)
{
    if (auto entered = m_state->enter("allocate"); !entered) return std::unexpected(entered.error());
    return m_memory.allocate(size);
}

Result<MemoryRef> FakeDevice::reserve_shadow(std::uint64_t size)
{
    if (auto entered = m_state->enter("reserve_shadow"); !entered) return std::unexpected(entered.error());
    return m_memory.reserve_shadow(size);
}

Result<void> FakeDevice::upload(const Address& to, ByteView bytes)
{
    if (auto entered = m_state->enter("upload"); !entered) return entered;
    const auto memory = m_memory.bytes(to, bytes.size());
    if (!memory) return within("upload", memory.error());
    std::ranges::copy(bytes, memory->begin());
    return {};
}

Result<void> FakeDevice::download(std::span<std::byte> to, const Address& from)
{
    if (auto entered = m_state->enter("download"); !entered) return entered;
    const auto memory = m_memory.bytes(from, to.size());
    if (!memory) return within("download", memory.error());
    std::ranges::copy(*memory, to.begin());
    return {};
}

Result<std::unique_ptr<Module>> FakeDevice::compile(std::string_view source, std::string_view options)
{
    if (auto entered = m_state->enter("compile"); !entered) return std::unexpected(entered.error());
    return FakeModule::compile(*m_state, source, options);
}

Result<std::unique_ptr<Module>> FakeDevice::load(ByteView image)
{
    if (auto entered = m_state->enter("load"); !entered) return std::unexpected(entered.error());
    return FakeModule::load(*m_state, image);
}

Result<std::unique_ptr<Stream>> FakeDevice::create_stream()
{
    if (auto entered = m_state->enter("create_stream"); !entered) return std::unexpected(entered.error());
    return std::make_unique<FakeStream>(*m_state, m_memory);
}

Result<std::unique_ptr<GraphBuilder>> FakeDevice::graph_builder(std::size_t nodes)
{
    return std::make_unique<FakeBuilder>(*m_state, m_memory, nodes);
}

} // namespace warmgraph::backends
