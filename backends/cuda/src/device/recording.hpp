// The CUDA device's part for recording.
#pragma once

#include "device/core.hpp"
#include "device/device_heap.hpp"
#include "device/memory.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::cuda {

class CudaRecording final : public DeviceRecording {
public:
    CudaRecording(Device& device, Core& core, Memory& memory)
        : DeviceRecording(device), m_core(core), m_memory(memory), m_heap(core)
    {
    }

    [[nodiscard]] Result<void> prepare_recording() override;
    [[nodiscard]] bool pause_recording() noexcept override;
    [[nodiscard]] Result<std::shared_ptr<void>> hold_recording() override;
    [[nodiscard]] Result<std::unique_ptr<EnqueueWatch>> watch_enqueues(Stream& stream) override;
    [[nodiscard]] Result<RawGraph> read_graph(void* native) override;
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate_native(void* native) override;
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate_captured(const RawGraph& graph) override;

    [[nodiscard]] std::optional<MemoryRef> allocation_at(std::uint64_t flat) const noexcept override
    {
        return m_memory.allocation_at(flat);
    }
    [[nodiscard]] bool is_handle(std::uint64_t word) const noexcept override;
    [[nodiscard]] bool is_managed(const Address& address) const noexcept override
    {
        return m_memory.is_managed(address);
    }
    using DeviceRecording::host_memory_at;
    [[nodiscard]] std::optional<std::string> host_memory_at(std::uint64_t flat,
                                                            const HostMappings& mappings) const override;
    [[nodiscard]] Result<std::optional<MemoryRef>> device_heap() override;
    [[nodiscard]] Result<MemoryRef> reserve_decoy(std::uint64_t size) override { return m_memory.reserve_decoy(size); }
    [[nodiscard]] Result<std::shared_ptr<CapturePool>> open_capture_pool(PoolMemory memory) override;
    [[nodiscard]] Result<MemoryRef> reserve_host_shadow(std::uint64_t size) override
    {
        return m_memory.reserve_host_shadow(size);
    }

private:
    Core& m_core;
    Memory& m_memory;
    DeviceHeap m_heap;
};

} // namespace warmgraph::backends::cuda
