// Semaphores that CUDA imports: Vulkan's, with the little of Vulkan that makes them. No window, no queue that is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "warmgraph/base/error.hpp"

namespace warmgraph::test {

/// A semaphore that counts upwards. Its device lives as long.
class VulkanTimeline {
public:
    VulkanTimeline() = default;
    VulkanTimeline(const VulkanTimeline&) = delete;
    VulkanTimeline& operator=(const VulkanTimeline&) = delete;
    virtual ~VulkanTimeline() = default;
    /// A new file descriptor, which whoever imports it owns.
    [[nodiscard]] virtual Result<int> export_fd() = 0;
    [[nodiscard]] virtual Result<std::uint64_t> value() const = 0;
    /// From the host.
    [[nodiscard]] virtual Result<void> signal(std::uint64_t value) = 0;
};

/// A logical device of one physical device.
class Vulkan {
public:
    /// The device that CUDA knows by this identity, or the only one. not_found where there is no Vulkan driver, no such
    /// device, or no vulkan/vulkan.h when this was built: says what was tried.
    [[nodiscard]] static Result<std::shared_ptr<Vulkan>> open(const std::array<std::byte, 16>& uuid);
    Vulkan() = default;
    Vulkan(const Vulkan&) = delete;
    Vulkan& operator=(const Vulkan&) = delete;
    virtual ~Vulkan() = default;
    [[nodiscard]] virtual Result<std::unique_ptr<VulkanTimeline>> timeline(std::uint64_t value) = 0;
};

} // namespace warmgraph::test
