#include "vulkan_timeline.hpp"

#ifdef WARMGRAPH_HAVE_VULKAN

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <dlfcn.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace warmgraph::test {
namespace {

// Vulkan's loader if it is installed, else NVIDIA's driver itself: containers for computing have only the driver.
constexpr std::array k_libraries{"libvulkan.so.1", "libGLX_nvidia.so.0", "libEGL_nvidia.so.0"};

Result<void> check(const char* call, VkResult result)
{
    if (result == VK_SUCCESS) return {};
    return fail(ErrorCode::driver_failed, "{} failed: {}", call, static_cast<int>(result));
}

class Instance {
public:
    /// Opens Vulkan's library and makes an instance. Fails with not_found when the library is missing, has no entry
    /// point, or makes no instance.
    [[nodiscard]] static Result<std::shared_ptr<Instance>> open(const char* library)
    {
        void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL); // not closed, because drivers keep threads
        if (handle == nullptr) return fail(ErrorCode::not_found, "{}", ::dlerror());
        auto* get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(handle, "vk_icdGetInstanceProcAddr"));
        if (get == nullptr) get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(handle, "vkGetInstanceProcAddr"));
        // Without the loader, the program must ask the driver itself which version of the interface it has.
        using Negotiate = VkResult (*)(std::uint32_t*);
        if (const auto negotiate =
                reinterpret_cast<Negotiate>(::dlsym(handle, "vk_icdNegotiateLoaderICDInterfaceVersion"))) {
            std::uint32_t version = 5;
            static_cast<void>(negotiate(&version));
        }
        if (get == nullptr) return fail(ErrorCode::not_found, "{} has no Vulkan entry", library);
        const auto create = reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
        if (create == nullptr) return fail(ErrorCode::not_found, "{} has no vkCreateInstance", library);
        VkApplicationInfo application{};
        application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
        application.apiVersion = VK_API_VERSION_1_2;
        VkInstanceCreateInfo info{};
        info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
        info.pApplicationInfo = &application;
        auto instance = std::make_shared<Instance>();
        instance->m_get = get;
        if (const VkResult result = create(&info, nullptr, &instance->m_handle); result != VK_SUCCESS)
            return fail(ErrorCode::not_found, "{}: vkCreateInstance failed: {}", library, static_cast<int>(result));
        return instance;
    }
    Instance() = default;
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;
    ~Instance()
    {
        if (m_handle == VK_NULL_HANDLE) return;
        if (const auto destroy = find<PFN_vkDestroyInstance>("vkDestroyInstance")) destroy(m_handle, nullptr);
    }
    template <class Function>
    [[nodiscard]] Function find(const char* name) const
    {
        return reinterpret_cast<Function>(m_get(m_handle, name));
    }
    [[nodiscard]] VkInstance get() const noexcept { return m_handle; }

private:
    PFN_vkGetInstanceProcAddr m_get = nullptr;
    VkInstance m_handle = VK_NULL_HANDLE;
};

class LogicalDevice final : public Vulkan, public std::enable_shared_from_this<LogicalDevice> {
public:
    LogicalDevice(std::shared_ptr<Instance> instance, VkDevice handle)
        : m_instance(std::move(instance)),
          m_handle(handle),
          m_get(m_instance->find<PFN_vkGetDeviceProcAddr>("vkGetDeviceProcAddr"))
    {
    }
    ~LogicalDevice() override
    {
        if (const auto destroy = find<PFN_vkDestroyDevice>("vkDestroyDevice")) destroy(m_handle, nullptr);
    }
    template <class Function>
    [[nodiscard]] Function find(const char* name) const
    {
        return reinterpret_cast<Function>(m_get(m_handle, name));
    }
    [[nodiscard]] VkDevice get() const noexcept { return m_handle; }
    [[nodiscard]] Result<std::unique_ptr<VulkanTimeline>> timeline(std::uint64_t value) override;

private:
    std::shared_ptr<Instance> m_instance;
    VkDevice m_handle;
    PFN_vkGetDeviceProcAddr m_get;
};

class Timeline final : public VulkanTimeline {
public:
    Timeline(std::shared_ptr<const LogicalDevice> device, VkSemaphore handle)
        : m_device(std::move(device)), m_handle(handle)
    {
    }
    ~Timeline() override
    {
        m_device->find<PFN_vkDestroySemaphore>("vkDestroySemaphore")(m_device->get(), m_handle, nullptr);
    }
    [[nodiscard]] Result<int> export_fd() override
    {
        VkSemaphoreGetFdInfoKHR info{};
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR;
        info.semaphore = m_handle;
        info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
        int fd = -1;
        const auto get = m_device->find<PFN_vkGetSemaphoreFdKHR>("vkGetSemaphoreFdKHR");
        if (auto got = check("vkGetSemaphoreFdKHR", get(m_device->get(), &info, &fd)); !got)
            return std::unexpected(got.error());
        return fd;
    }
    [[nodiscard]] Result<std::uint64_t> value() const override
    {
        std::uint64_t value = 0;
        const auto get = m_device->find<PFN_vkGetSemaphoreCounterValue>("vkGetSemaphoreCounterValue");
        if (auto got = check("vkGetSemaphoreCounterValue", get(m_device->get(), m_handle, &value)); !got)
            return std::unexpected(got.error());
        return value;
    }
    [[nodiscard]] Result<void> signal(std::uint64_t value) override
    {
        VkSemaphoreSignalInfo info{};
        info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
        info.semaphore = m_handle;
        info.value = value;
        return check("vkSignalSemaphore",
                     m_device->find<PFN_vkSignalSemaphore>("vkSignalSemaphore")(m_device->get(), &info));
    }

private:
    std::shared_ptr<const LogicalDevice> m_device;
    VkSemaphore m_handle;
};

Result<std::unique_ptr<VulkanTimeline>> LogicalDevice::timeline(std::uint64_t value)
{
    VkExportSemaphoreCreateInfo shared{};
    shared.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO;
    shared.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkSemaphoreTypeCreateInfo counts{};
    counts.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    counts.pNext = &shared;
    counts.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    counts.initialValue = value;
    VkSemaphoreCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = &counts;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    const auto create = find<PFN_vkCreateSemaphore>("vkCreateSemaphore");
    if (auto made = check("vkCreateSemaphore", create(m_handle, &info, nullptr, &semaphore)); !made)
        return std::unexpected(made.error());
    return std::make_unique<Timeline>(shared_from_this(), semaphore);
}

bool has_identity(const Instance& instance, VkPhysicalDevice device, const std::array<std::byte, 16>& uuid)
{
    VkPhysicalDeviceIDProperties identity{};
    identity.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &identity;
    const auto get = instance.find<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2");
    if (get == nullptr) return false;
    get(device, &properties);
    return std::memcmp(identity.deviceUUID, uuid.data(), uuid.size()) == 0;
}

Result<VkPhysicalDevice> physical_device(const Instance& instance, const std::array<std::byte, 16>& uuid)
{
    const auto list = instance.find<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices");
    std::uint32_t count = 0;
    static_cast<void>(list(instance.get(), &count, nullptr));
    std::vector<VkPhysicalDevice> devices(count);
    static_cast<void>(list(instance.get(), &count, devices.data()));
    devices.resize(count);
    const auto same =
        std::ranges::find_if(devices, [&](VkPhysicalDevice one) { return has_identity(instance, one, uuid); });
    if (same != devices.end()) return *same;
    if (devices.size() == 1) return devices.front();
    return fail(ErrorCode::not_found, "{} Vulkan devices, and none is CUDA's", devices.size());
}

Result<std::shared_ptr<Vulkan>> make_device(const std::shared_ptr<Instance>& instance,
                                            const std::array<std::byte, 16>& uuid)
{
    const auto physical = physical_device(*instance, uuid);
    if (!physical) return std::unexpected(physical.error());
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkPhysicalDeviceTimelineSemaphoreFeatures features{};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    features.timelineSemaphore = VK_TRUE;
    const char* const extension = VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME;
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
    VkDevice device = VK_NULL_HANDLE;
    const auto create = instance->find<PFN_vkCreateDevice>("vkCreateDevice");
    if (const VkResult result = create(*physical, &info, nullptr, &device); result != VK_SUCCESS)
        return fail(ErrorCode::not_found, "vkCreateDevice failed: {}", static_cast<int>(result));
    return std::make_shared<LogicalDevice>(instance, device);
}

} // namespace

Result<std::shared_ptr<Vulkan>> Vulkan::open(const std::array<std::byte, 16>& uuid)
{
    std::string tried;
    for (const char* library : k_libraries) {
        const auto instance = Instance::open(library);
        auto device = instance ? make_device(*instance, uuid) : std::unexpected(instance.error());
        if (device) return device;
        tried += (tried.empty() ? "" : "; ") + device.error().message;
    }
    return fail(ErrorCode::not_found, "no Vulkan device: {}", tried);
}

} // namespace warmgraph::test

#else

namespace warmgraph::test {

Result<std::shared_ptr<Vulkan>> Vulkan::open(const std::array<std::byte, 16>&)
{
    return fail(ErrorCode::not_found, "built without vulkan/vulkan.h: install libvulkan-dev and build again");
}

} // namespace warmgraph::test

#endif
