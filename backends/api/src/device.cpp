#include "warmgraph/backends/device.hpp"

#include "warmgraph/backends/bulk_memory.hpp"

namespace warmgraph::backends {

Device::Device() = default;
Device::~Device() = default;

BulkMemory& Device::bulk()
{
    std::call_once(m_bulk_made, [this] { m_bulk = std::make_unique<BulkMemory>(*this); });
    return *m_bulk;
}

} // namespace warmgraph::backends
