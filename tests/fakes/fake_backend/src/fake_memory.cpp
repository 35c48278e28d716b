#include "fake_memory.hpp"

#include "warmgraph/backends/base_id.hpp"

namespace warmgraph::backends {

MemoryRef FakeMemory::insert(std::uint64_t size, std::optional<Bytes> bytes)
{
    const std::uint64_t base = next_base_id();
    const auto added = m_allocations.try_emplace(base, m_state, size).first;
    added->second.bytes = std::move(bytes);
    return {{base, 0}, size};
}

Result<MemoryRef> FakeMemory::allocate(std::uint64_t size)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot allocate 0 bytes");
    const std::scoped_lock lock(m_mutex);
    if (size > m_state.options.memory - m_used) {
        return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes, {} of {} are in use", size, m_used,
                    m_state.options.memory);
    }
    m_used += size;
    m_tally.add(size);
    return insert(size, Bytes(size, std::byte{0xcd}));
}

Result<MemoryRef> FakeMemory::reserve_shadow(std::uint64_t size)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot reserve 0 bytes");
    const std::scoped_lock lock(m_mutex);
    return insert(size, std::nullopt);
}

void FakeMemory::release(const MemoryRef& memory) noexcept
{
    const std::scoped_lock lock(m_mutex);
    const auto found = m_allocations.find(memory.address.base);
    if (found == m_allocations.end()) return;
    if (found->second.bytes) {
        m_used -= found->second.size;
        m_tally.remove(found->second.size);
    }
    m_allocations.erase(found);
}

Result<std::uint64_t> FakeMemory::room(const Address& address, std::uint64_t size) const
{
    const auto found = m_allocations.find(address.base);
    if (found == m_allocations.end()) {
        return fail(ErrorCode::invalid_argument, "{:#x} is not memory of this device (or was released)", address.base);
    }
    const std::uint64_t total = found->second.size;
    if (address.offset > total || size > total - address.offset) {
        return fail(ErrorCode::invalid_argument, "{} bytes at offset {} do not fit into an allocation of {} bytes",
                    size, address.offset, total);
    }
    return total - address.offset;
}

Result<void> FakeMemory::check(const Address& address, std::uint64_t size) const
{
    const std::scoped_lock lock(m_mutex);
    if (const auto found = room(address, size); !found) return std::unexpected(found.error());
    return {};
}

Result<std::span<std::byte>> FakeMemory::rest(const Address& address)
{
    const std::scoped_lock lock(m_mutex);
    const auto found = room(address, 1);
    if (!found) return std::unexpected(found.error());
    auto& bytes = m_allocations.find(address.base)->second.bytes;
    if (!bytes)
        return fail(ErrorCode::invalid_argument, "{:#x} is an address that is reserved for captures, and has no memory",
                    address.base);
    return std::span(*bytes).subspan(address.offset);
}

Result<std::span<std::byte>> FakeMemory::bytes(const Address& address, std::uint64_t size)
{
    if (auto checked = check(address, size); !checked) return std::unexpected(checked.error());
    if (size == 0) return std::span<std::byte>{};
    const auto found = rest(address);
    if (!found) return std::unexpected(found.error());
    return found->first(size);
}

} // namespace warmgraph::backends
