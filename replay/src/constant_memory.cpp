#include "warmgraph/replay/constant_memory.hpp"

#include <compare>
#include <map>
#include <mutex>

namespace warmgraph::replay {

namespace {

struct Key {
    const backends::Device* device = nullptr; // the constants keep the device open, so its address is not reused
    Digest digest;
    std::uint32_t alignment = 1;
    auto operator<=>(const Key&) const = default;
};

/// All shared constants of the process.
struct ConstantRegistry {
    std::mutex mutex; // held during loading: other threads that want the same contents must wait anyway
    std::map<Key, std::weak_ptr<const ConstantMemory>> constants;

    [[nodiscard]] static ConstantRegistry& instance()
    {
        static ConstantRegistry* const all =
            new ConstantRegistry; // never destroyed: an executable may be destroyed while the process exits
        return *all;
    }
};

} // namespace

Result<std::shared_ptr<const ConstantMemory>> ConstantMemory::make(const std::shared_ptr<backends::Device>& device,
                                                                   std::uint64_t size, std::uint32_t alignment,
                                                                   ByteView contents)
{
    if (contents.size() != size) return fail(ErrorCode::corrupt, "it has {} bytes, expected {}", contents.size(), size);
    // Without flat addresses no additional room is needed: such a device aligns its allocations itself.
    const std::uint64_t room = device->limits().flat_addresses ? alignment - 1 : 0;
    auto allocated = device->allocate(size + room);
    if (!allocated) return std::unexpected(allocated.error());
    const std::uint64_t beyond = room == 0 ? 0 : (alignment - allocated->address.flat() % alignment) % alignment;
    // std::make_shared cannot call the private constructor.
    const std::shared_ptr<const ConstantMemory> result{
        new ConstantMemory{device, *allocated, {allocated->address + beyond, size}}};
    if (auto uploaded = device->upload(result->memory().address, contents); !uploaded)
        return std::unexpected(uploaded.error());
    return result;
}

Result<std::shared_ptr<const ConstantMemory>> ConstantMemory::load_exclusively(
    const std::shared_ptr<backends::Device>& device, std::uint64_t size, std::uint32_t alignment,
    const std::function<Result<Bytes>()>& contents)
{
    const auto bytes = contents();
    if (!bytes) return std::unexpected(bytes.error());
    return make(device, size, alignment, *bytes);
}

Result<std::shared_ptr<const ConstantMemory>> ConstantMemory::load(const std::shared_ptr<backends::Device>& device,
                                                                   const Digest& digest, std::uint64_t size,
                                                                   std::uint32_t alignment,
                                                                   const std::function<Result<Bytes>()>& contents)
{
    auto& known = ConstantRegistry::instance();
    const std::scoped_lock lock{known.mutex};
    std::erase_if(known.constants, [](const auto& one) { return one.second.expired(); });
    auto& slot = known.constants[{device.get(), digest, alignment}];
    if (auto loaded = slot.lock()) return loaded;
    const auto bytes = contents();
    if (!bytes) return std::unexpected(bytes.error());
    auto made = make(device, size, alignment, *bytes);
    if (made) slot = *made;
    return made;
}

} // namespace warmgraph::replay
