#include "device/backend.hpp"

#include <map>
#include <mutex>

#include "device/device.hpp"
#include "device/facts.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/backends/selection.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::backends {
namespace cuda {
namespace {

std::string driver_library(const CudaOptions& options)
{
    if (!options.driver.empty()) return options.driver;
    const auto named = environment("WARMGRAPH_CUDA_DRIVER");
    return named && !named->empty() ? *named : "libcuda.so.1";
}

/// Describes why the driver cannot start; nullopt if it started or there is simply no device.
std::optional<Error> start_failure(const Driver& driver, CUresult status)
{
    if (status == CUDA_SUCCESS || status == CUDA_ERROR_NO_DEVICE) return std::nullopt;
    Error error = driver.error("cuInit", status);
    error.message +=
        status == CUDA_ERROR_STUB_LIBRARY
            ? fmt::format("; {} is the CUDA toolkit's stub library, which is only for linking: remove its folder from "
                          "LD_LIBRARY_PATH",
                          driver.path)
            : "; check that nvidia-smi works, and that the driver library and the kernel module have the same version";
    return error;
}

Result<FoundDevice> describe(const Driver& driver, int index)
{
    FoundDevice found;
    found.ordinal = static_cast<std::uint16_t>(index);
    auto got = driver.call("cuDeviceGet", driver.cuDeviceGet, &found.device, index);
    if (!got) return std::unexpected(got.error());
    const auto name = device_name(driver, found.device);
    if (!name) return std::unexpected(name.error());
    int major = 0, minor = 0;
    for (const auto& [what, value] : {std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                                      std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}}) {
        auto asked = driver.call("cuDeviceGetAttribute", driver.cuDeviceGetAttribute, value, what, found.device);
        if (!asked) return std::unexpected(asked.error());
    }
    found.info = {fmt::format("cuda:{}", index), *name,
                  fmt::format("NVIDIA CUDA, driver {}, sm_{}{}", version_text(driver.version), major, minor)};
    return found;
}

std::vector<DeviceInfo> infos_of(const std::vector<FoundDevice>& found)
{
    std::vector<DeviceInfo> infos;
    infos.reserve(found.size());
    for (const FoundDevice& device : found) infos.push_back(device.info);
    return infos;
}

class CudaBackend final : public Backend {
public:
    CudaBackend(CudaOptions options, const RecordingSide* side) : m_options(std::move(options)), m_recording_side(side)
    {
    }
    [[nodiscard]] std::string name() const override { return "cuda"; }

    [[nodiscard]] Result<std::vector<DeviceInfo>> devices() override
    {
        const std::scoped_lock lock(m_mutex);
        const auto found = find_devices();
        if (!found) return std::unexpected(found.error());
        return infos_of(*found);
    }

    [[nodiscard]] std::vector<Library> libraries() override
    {
        return m_recording_side != nullptr ? m_recording_side->libraries(m_options) : std::vector<Library>{};
    }

    [[nodiscard]] Result<std::shared_ptr<Device>> open(std::string_view selector) override
    {
        const std::scoped_lock lock(m_mutex);
        const auto found = find_devices();
        if (!found) return std::unexpected(found.error());
        const auto index = select_device(selector, infos_of(*found));
        if (!index) return std::unexpected(index.error());
        if (auto open = m_open[*index].lock()) return open;
        auto device = CudaDevice::open(m_driver, m_options, m_recording_side, (*found)[*index]);
        if (device) m_open[*index] = *device;
        return device;
    }

    [[nodiscard]] Result<void> prepare_recording() override
    {
        if (m_recording_side == nullptr) return Backend::prepare_recording();
        const std::scoped_lock lock(m_mutex);
        if (auto loaded = load_driver(); !loaded) return loaded;
        return m_recording_side->prepare(m_driver, m_options);
    }

private:
    [[nodiscard]] Result<void> load_driver()
    {
        if (m_driver) return {};
        auto loaded = Driver::load(driver_library(m_options));
        if (!loaded) return std::unexpected(loaded.error());
        m_driver = std::move(*loaded);
        return {};
    }

    [[nodiscard]] Result<std::vector<FoundDevice>> find_devices()
    {
        if (auto loaded = load_driver(); !loaded) return std::unexpected(loaded.error());
        const CUresult started = m_driver->status("cuInit", m_driver->cuInit, 0U);
        if (auto failure = start_failure(*m_driver, started)) return std::unexpected(std::move(*failure));
        int count = 0;
        if (started == CUDA_SUCCESS) {
            auto counted = m_driver->call("cuDeviceGetCount", m_driver->cuDeviceGetCount, &count);
            if (!counted) return std::unexpected(counted.error());
        }
        std::vector<FoundDevice> found;
        for (int index = 0; index < count; ++index) {
            auto device = describe(*m_driver, index);
            if (!device) return within(fmt::format("look at cuda:{}", index), device.error());
            found.push_back(std::move(*device));
        }
        return found;
    }

    CudaOptions m_options;
    const RecordingSide* m_recording_side;
    std::mutex m_mutex; // guards the members below
    std::shared_ptr<const Driver> m_driver;
    std::map<std::size_t, std::weak_ptr<Device>> m_open; ///< a device that is in use is opened only once
};

} // namespace

std::shared_ptr<Backend> make_backend(CudaOptions options, const RecordingSide* side)
{
    return std::make_shared<CudaBackend>(std::move(options), side);
}

} // namespace cuda

std::shared_ptr<Backend> make_cuda_replay_backend(CudaOptions options)
{
    return cuda::make_backend(std::move(options), nullptr);
}

} // namespace warmgraph::backends
