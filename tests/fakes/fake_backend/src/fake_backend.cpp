#include <map>
#include <mutex>

#include "fake_device.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/selection.hpp"

namespace warmgraph::backends {
namespace {

class FakeBackendImpl final : public FakeBackend {
public:
    explicit FakeBackendImpl(const FakeOptions& options) { m_state->options = options; }

    [[nodiscard]] std::string name() const override { return "fake"; }

    [[nodiscard]] Result<std::vector<DeviceInfo>> devices() override
    {
        if (auto entered = m_state->enter("devices"); !entered) return std::unexpected(entered.error());
        return infos();
    }

    [[nodiscard]] Result<std::shared_ptr<Device>> open(std::string_view selector) override
    {
        if (auto entered = m_state->enter("open"); !entered) return std::unexpected(entered.error());
        const auto index = select_device(selector, infos());
        if (!index) return std::unexpected(index.error());
        const std::scoped_lock lock(m_mutex);
        auto device = m_open[*index].lock();
        if (!device) {
            device = std::make_shared<FakeDevice>(m_state, static_cast<std::uint16_t>(*index));
            m_open[*index] = device;
        }
        return device;
    }

    void inject(Fault fault) override { m_state->inject(std::move(fault)); }
    void clear_faults() override { m_state->clear_faults(); }
    [[nodiscard]] std::vector<std::string> calls() const override { return m_state->calls(); }
    [[nodiscard]] std::uint64_t call_count(std::string_view entry) const override { return m_state->call_count(entry); }
    void clear_calls() override { m_state->clear_calls(); }
    [[nodiscard]] LiveObjects live() const override
    {
        return {m_state->allocations, m_state->modules, m_state->streams, m_state->execs};
    }

private:
    [[nodiscard]] std::vector<DeviceInfo> infos() const
    {
        std::vector<DeviceInfo> list;
        for (std::uint32_t i = 0; i < m_state->options.devices; ++i)
            list.push_back(fake_device_info(*m_state, static_cast<std::uint16_t>(i)));
        return list;
    }

    std::shared_ptr<FakeState> m_state = std::make_shared<FakeState>();
    std::mutex m_mutex;
    std::map<std::size_t, std::weak_ptr<Device>> m_open;
};

} // namespace

std::shared_ptr<FakeBackend> make_fake_backend(const FakeOptions& options)
{
    return std::make_shared<FakeBackendImpl>(options);
}

} // namespace warmgraph::backends
