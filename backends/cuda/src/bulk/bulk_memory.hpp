// Bulk memory work by kernels on the device, or through the host if kernels are refused or cannot reach the memory.
#pragma once

#include "device/memory.hpp"
#include "launcher.hpp"
#include "warmgraph/backends/bulk_memory.hpp"

namespace warmgraph::backends::cuda {

class CudaBulkMemory final : public BulkMemory {
public:
    CudaBulkMemory(Device& device, const Core& core, const Memory& memory, std::uint64_t piece = k_bulk_piece) noexcept
        : BulkMemory(device, piece), m_core(core), m_memory(memory), m_launcher(core)
    {
    }

    void warm_up() override { static_cast<void>(m_launcher.is_ready()); }
    [[nodiscard]] bulk::Launcher& launcher() noexcept { return m_launcher; }
    [[nodiscard]] Result<void> copy(const Address& to, const Address& from, std::uint64_t size) override;
    [[nodiscard]] Result<void> fill(const MemoryRef& memory, std::byte pattern) override;
    [[nodiscard]] Result<void> disturb(const MemoryRef& memory, DType dtype) override;
    [[nodiscard]] Result<std::optional<std::uint64_t>> first_difference(const Address& a, const Address& b,
                                                                        std::uint64_t size) override;
    [[nodiscard]] Result<std::optional<std::uint64_t>> first_other(const MemoryRef& memory, std::byte pattern) override;
    [[nodiscard]] Result<Departure> departure(const Address& candidate, std::span<const Address> others, DType dtype,
                                              std::uint64_t elements, double roundings) override;
    [[nodiscard]] Result<Fingerprint> fingerprint(const MemoryRef& memory) override;
    [[nodiscard]] Result<std::optional<BulkFinding>> run(std::span<const BulkStep> steps) override;
    [[nodiscard]] Result<std::vector<Fingerprint>> fingerprints(std::span<const MemoryRef> memory) override;
    [[nodiscard]] Result<AddressMatches> words_in(const MemoryRef& memory, std::span<const AddressWindow> windows,
                                                  std::size_t most) override;

private:
    /// Returns invalid_argument for addresses that an upload would refuse too.
    [[nodiscard]] Result<void> check(std::span<const Address> addresses, std::uint64_t size) const;
    /// True if a kernel of this device may access the memory. Access to another device's memory, and to some host
    /// memory, would fault and destroy the process's context.
    [[nodiscard]] bool is_reached(std::span<const Address> addresses) const;
    /// True if kernels do the work. False for memory that check() refuses: then BulkMemory's code on the host returns
    /// the error.
    [[nodiscard]] bool is_ours(std::span<const Address> addresses, std::uint64_t size);
    /// True if kernels of this device can do all comparisons, and the driver all copies and fills.
    [[nodiscard]] bool are_ours(std::span<const BulkStep> steps);
    [[nodiscard]] Result<AddressMatches> search(bulk::WordsWork work, std::size_t most);

    const Core& m_core;
    const Memory& m_memory;
    bulk::Launcher m_launcher;
};

} // namespace warmgraph::backends::cuda
