#include <map>
#include <mutex>

#include "device.hpp"
#include "warmgraph/backends/opencl.hpp"
#include "warmgraph/backends/selection.hpp"

namespace warmgraph::backends {
namespace opencl {
namespace {

constexpr const char* k_cure = "install an OpenCL driver, e.g. the package pocl-opencl-icd, which runs on any CPU";

/// Calls clGetPlatformIDs or clGetDeviceIDs for the count, then for the list. `none` is the error code for "empty".
template <class T, class Function, class... Args>
Result<std::vector<T>> list_ids(std::string_view text, Function function, cl_int none, Args... args)
{
    cl_uint count = 0;
    const cl_int code = function(args..., 0, nullptr, &count);
    if (code == none || (code == CL_SUCCESS && count == 0)) return std::vector<T>{};
    if (code != CL_SUCCESS) return driver_error(text, code);
    std::vector<T> list(count);
    if (auto listed = call(text, function, args..., count, list.data(), nullptr); !listed)
        return std::unexpected(listed.error());
    return list;
}

Result<std::vector<FoundDevice>> find_devices()
{
    // Serialised: while one thread initialises PoCL, another thread that asks would get no device.
    static std::mutex& mutex = *new std::mutex; // never destroyed: threads may outlive main()
    const std::scoped_lock lock(mutex);
    if (auto loaded = load_driver(); !loaded) return std::unexpected(loaded.error());
    constexpr cl_int k_platform_not_found = -1001; // CL_PLATFORM_NOT_FOUND_KHR of cl_khr_icd
    const auto platforms =
        list_ids<cl_platform_id>("clGetPlatformIDs", driver().clGetPlatformIDs, k_platform_not_found);
    if (!platforms) return within("list the OpenCL platforms", platforms.error());
    if (platforms->empty()) return fail(ErrorCode::not_found, "no OpenCL platform on this machine; {}", k_cure);
    std::vector<FoundDevice> found;
    for (const cl_platform_id platform : *platforms) {
        const auto devices = list_ids<cl_device_id>("clGetDeviceIDs", driver().clGetDeviceIDs, CL_DEVICE_NOT_FOUND,
                                                    platform, cl_device_type{CL_DEVICE_TYPE_ALL});
        if (!devices) return std::unexpected(devices.error());
        const auto version = query_text("clGetPlatformInfo", driver().clGetPlatformInfo, platform,
                                        cl_platform_info{CL_PLATFORM_VERSION});
        const auto vendor =
            query_text("clGetPlatformInfo", driver().clGetPlatformInfo, platform, cl_platform_info{CL_PLATFORM_NAME});
        for (const cl_device_id device : *devices) {
            const auto name =
                query_text("clGetDeviceInfo", driver().clGetDeviceInfo, device, cl_device_info{CL_DEVICE_NAME});
            const auto driver_version =
                query_text("clGetDeviceInfo", driver().clGetDeviceInfo, device, cl_device_info{CL_DRIVER_VERSION});
            const auto ordinal = static_cast<std::uint16_t>(found.size());
            found.push_back({platform,
                             device,
                             ordinal,
                             {fmt::format("opencl:{}", ordinal), name.value_or("unknown"),
                              fmt::format("{}, {}, driver {}", vendor.value_or("unknown platform"),
                                          version.value_or("unknown version"), driver_version.value_or("unknown"))}});
        }
    }
    return found;
}

std::vector<DeviceInfo> infos_of(const std::vector<FoundDevice>& found)
{
    std::vector<DeviceInfo> infos;
    for (const FoundDevice& device : found) infos.push_back(device.info);
    return infos;
}

class OpenclBackend final : public Backend {
public:
    [[nodiscard]] std::string name() const override { return "opencl"; }

    [[nodiscard]] Result<std::vector<DeviceInfo>> devices() override
    {
        const auto found = find_devices();
        if (!found) return std::unexpected(found.error());
        return infos_of(*found);
    }

    [[nodiscard]] Result<std::shared_ptr<Device>> open(std::string_view selector) override
    {
        const auto found = find_devices();
        if (!found) return std::unexpected(found.error());
        const auto index = select_device(selector, infos_of(*found));
        if (!index) return std::unexpected(index.error());
        const std::scoped_lock lock(m_mutex);
        if (auto open = m_open[*index].lock()) return open;
        auto device = OpenclDevice::open((*found)[*index]);
        if (device) m_open[*index] = *device;
        return device;
    }

private:
    std::mutex m_mutex;
    std::map<std::size_t, std::weak_ptr<Device>> m_open; ///< a device that is in use is opened only once
};

} // namespace
} // namespace opencl

std::shared_ptr<Backend> make_opencl_backend() { return std::make_shared<opencl::OpenclBackend>(); }

} // namespace warmgraph::backends
