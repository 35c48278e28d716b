#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "bulk/bulk_memory.hpp"
#include "device/core.hpp"
#include "device/memory.hpp"
#include "device/staging.hpp"
#include "device/warm_up.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/graph_builder.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::cuda {

/// A device that was found, before it is opened.
struct FoundDevice {
    CUdevice device = 0;
    std::uint16_t ordinal = 0;
    DeviceInfo info;
};

class CudaDevice final : public Device {
public:
    [[nodiscard]] static Result<std::shared_ptr<Device>> open(std::shared_ptr<const Driver> driver,
                                                              const CudaOptions& options, const RecordingSide* side,
                                                              const FoundDevice& found);
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;
    ~CudaDevice() override;

    [[nodiscard]] std::string id() const override { return m_found.info.id; }
    [[nodiscard]] std::string backend() const override { return "cuda"; }
    [[nodiscard]] std::string name() const override { return m_found.info.name; }
    [[nodiscard]] std::uint16_t ordinal() const noexcept override { return m_found.ordinal; }
    [[nodiscard]] const DeviceLimits& limits() const noexcept override { return m_core->limits; }
    [[nodiscard]] std::vector<cachefmt::Fact> facts() const override;
    [[nodiscard]] std::string replay_mode() const override;
    [[nodiscard]] std::shared_ptr<void> enter() const override;

    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size) override { return m_memory->allocate(size); }
    void release(const MemoryRef& memory) noexcept override { m_memory->release(memory); }
    [[nodiscard]] MemoryTally& tally() noexcept override { return m_core->tally; }
    [[nodiscard]] Result<MemoryRef> allocate_host(std::uint64_t size) override { return m_memory->allocate_host(size); }
    [[nodiscard]] MemorySpace space_of(const Address& address) const noexcept override
    {
        return m_memory->space_of(address);
    }
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size) override
    {
        return m_memory->reserve_shadow(size);
    }
    [[nodiscard]] Result<void> upload(const Address& to, ByteView bytes) override;
    [[nodiscard]] Result<void> download(std::span<std::byte> to, const Address& from) override;
    [[nodiscard]] BulkMemory& bulk() override { return *m_bulk; }
    [[nodiscard]] std::uint64_t free_memory() const override;

    [[nodiscard]] Compiler& compiler() override { return *m_compiler; }
    [[nodiscard]] Result<std::unique_ptr<Module>> load(ByteView image) override;
    [[nodiscard]] Result<void> register_module(void* module, ByteView image) override;
    [[nodiscard]] std::vector<std::shared_ptr<Module>> registered_modules() override
    {
        return m_core->modules.registered();
    }
    [[nodiscard]] std::uint64_t registrations() const noexcept override { return m_core->modules.registrations(); }
    [[nodiscard]] std::vector<std::string> exposed_variables(ByteView image) override;
    [[nodiscard]] std::uint64_t exposures() const noexcept override;
    [[nodiscard]] Result<std::unique_ptr<Stream>> create_stream() override;
    [[nodiscard]] Result<std::unique_ptr<Stream>> view_stream(void* native) override;
    [[nodiscard]] Result<std::unique_ptr<GraphBuilder>> graph_builder(std::size_t nodes) override;
    [[nodiscard]] Result<std::shared_ptr<Event>> create_event() override;

    void begin_warm_up() noexcept override;
    [[nodiscard]] DeviceRecording& recording() override { return m_recording ? *m_recording : Device::recording(); }

private:
    explicit CudaDevice(const FoundDevice& found);
    [[nodiscard]] Result<void> retain_context();
    [[nodiscard]] Result<void> read_limits();

    FoundDevice m_found;
    mutable std::mutex m_facts_mutex;            // guards m_facts
    mutable std::vector<cachefmt::Fact> m_facts; ///< kept, so that not every function asks the driver
    std::unique_ptr<Core> m_core;
    std::unique_ptr<Memory> m_memory; ///< destroyed before m_core, which it uses
    std::unique_ptr<Staging> m_staging;
    std::unique_ptr<CudaBulkMemory> m_bulk;
    std::unique_ptr<DeviceRecording> m_recording; ///< null if nothing records
    std::unique_ptr<WarmUp> m_warm_up;            ///< destroyed before the members above, which it uses
    std::unique_ptr<Compiler> m_compiler;
};

} // namespace warmgraph::backends::cuda
