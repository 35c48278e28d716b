#include "warmgraph/facade/capture_pool.hpp"

#include <utility>

#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

std::shared_ptr<backends::CapturePool> open_capture_pool(const Device& device, backends::PoolMemory memory)
{
    struct PoolOfDevice {
        std::shared_ptr<backends::Device> device;
        std::shared_ptr<backends::CapturePool> pool; // destroyed before the device
    };
    const auto& of = DeviceAccess::impl(device)->device;
    auto pool = value_or_raise(of->recording().open_capture_pool(memory));
    auto kept = std::make_shared<PoolOfDevice>(PoolOfDevice{of, std::move(pool)});
    return {kept, kept->pool.get()};
}

} // namespace warmgraph
