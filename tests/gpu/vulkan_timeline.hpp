// Vulkan semaphores that CUDA can import. It uses only the Vulkan calls that make them, no window and no queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "warmgraph/base/error.hpp"

namespace warmgraph::test {

/// A semaphore that counts upwards. It keeps its device alive.
class VulkanTimeline {
public:
    VulkanTimeline() = default;
    VulkanTimeline(const VulkanTimeline&) = delete;
    VulkanTimeline& operator=(const VulkanTimeline&) = delete;
    virtual ~VulkanTimeline() = default;
    /// Returns a new file descriptor, which belongs to the code that imports it.
    [[nodiscard]] virtual Result<int> export_fd() = 0;
    [[nodiscard]] virtual Result<std::uint64_t> value() const = 0;
    /// Signals the value from the host.
    [[nodiscard]] virtual Result<void> signal(std::uint64_t value) = 0;
};

/// A logical device of one physical device.
class Vulkan {
public:
    /// Opens the device with the identity `uuid`, which CUDA gives, or the only device. Fails with not_found when there
    /// is no Vulkan driver, no such device, or no vulkan/vulkan.h at build time; the message lists the attempts.
    [[nodiscard]] static Result<std::shared_ptr<Vulkan>> open(const std::array<std::byte, 16>& uuid);
    Vulkan() = default;
    Vulkan(const Vulkan&) = delete;
    Vulkan& operator=(const Vulkan&) = delete;
    virtual ~Vulkan() = default;
    [[nodiscard]] virtual Result<std::unique_ptr<VulkanTimeline>> timeline(std::uint64_t value) = 0;
};

} // namespace warmgraph::test
