// The functions with which PyTorch's allocator gets the memory of a capture's pool (torch.cuda.MemPool).
#include "warmgraph/facade/capture_pool.hpp"

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "c_api.hpp"
#include "warmgraph/python.h"

using warmgraph::backends::CapturePool;
using warmgraph::backends::PoolMemory;

namespace {

struct Pools {
    std::mutex mutex; // guards the members below
    std::shared_ptr<CapturePool> open;
    std::map<std::uint64_t, std::shared_ptr<CapturePool>> owners; ///< the pools of live segments, by start address
};

Pools& pools()
{
    // Never destroyed: PyTorch may free segments at the end of the process.
    static Pools* const s_pools = new Pools; // NOLINT(cppcoreguidelines-owning-memory)
    return *s_pools;
}

} // namespace

wg_status wg_capture_pool_open(const wg_device* device, int32_t is_shared)
{
    return warmgraph::c_api::guarded([&] {
        auto pool = warmgraph::open_capture_pool(warmgraph::c_api::need_device(device).device,
                                                 is_shared != 0 ? PoolMemory::shared : PoolMemory::own);
        const std::scoped_lock lock(pools().mutex);
        pools().open = std::move(pool);
    });
}

void wg_capture_pool_close(void)
{
    std::shared_ptr<CapturePool> closed; // destroyed without the lock
    const std::scoped_lock lock(pools().mutex);
    closed = std::exchange(pools().open, nullptr);
}

void* wg_capture_pool_allocate(int64_t bytes, int32_t, void*)
try {
    Pools& all = pools();
    const std::scoped_lock lock(all.mutex);
    if (!all.open || bytes <= 0) return nullptr;
    const auto segment = all.open->allocate(static_cast<std::uint64_t>(bytes));
    // The operator that allocates leaves some bytes of its kernel's parameters as they are on the stack.
    wg_clear_stack();
    if (!segment) return nullptr; // PyTorch reports that the device's memory is full
    all.owners.emplace(*segment, all.open);
    return std::bit_cast<void*>(static_cast<std::uintptr_t>(*segment));
} catch (...) {
    return nullptr;
}

void wg_capture_pool_release(void* segment, int64_t, int32_t, void*)
{
    Pools& all = pools();
    std::shared_ptr<CapturePool> owner; // destroyed without the lock
    const std::scoped_lock lock(all.mutex);
    const auto found = all.owners.find(std::bit_cast<std::uintptr_t>(segment));
    if (found == all.owners.end()) return;
    owner = std::move(found->second);
    all.owners.erase(found);
    owner->release(std::bit_cast<std::uintptr_t>(segment));
}
