#include "memory.hpp"

#include "warmgraph/backends/base_id.hpp"

namespace warmgraph::backends::opencl {

MemoryRef Memory::insert(std::uint64_t size, Buffer object)
{
    const std::scoped_lock lock(m_mutex);
    const std::uint64_t base = next_base_id();
    m_allocations.emplace(base, Allocation{size, std::move(object), {}});
    return {{base, 0}, size};
}

Result<MemoryRef> Memory::allocate(std::uint64_t size)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot allocate 0 bytes");
    auto object = create<Buffer>("clCreateBuffer", driver().clCreateBuffer, m_context, cl_mem_flags{CL_MEM_READ_WRITE},
                                 size, nullptr);
    if (!object) return within(fmt::format("cannot allocate {} bytes", size), object.error());
    m_tally.add(size);
    return insert(size, std::move(*object));
}

Result<MemoryRef> Memory::reserve_shadow(std::uint64_t size)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot reserve 0 bytes");
    return insert(size, Buffer{});
}

void Memory::release(const MemoryRef& memory) noexcept
{
    const std::scoped_lock lock(m_mutex);
    const auto found = m_allocations.find(memory.address.base);
    if (found == m_allocations.end()) return;
    if (found->second.object) m_tally.remove(found->second.size);
    m_allocations.erase(found);
}

Result<const Memory::Allocation*> Memory::find(const char* what, const Address& address, std::uint64_t size) const
{
    const auto found = m_allocations.find(address.base);
    if (found == m_allocations.end()) {
        return fail(ErrorCode::invalid_argument, "{}: {:#x} is not memory of this device (or was released)", what,
                    address.base);
    }
    const std::uint64_t room = found->second.size;
    if (address.offset > room || size > room - address.offset) {
        return fail(ErrorCode::invalid_argument, "{}: {} bytes at offset {} do not fit into an allocation of {} bytes",
                    what, size, address.offset, room);
    }
    return &found->second;
}

Result<const Memory::Allocation*> Memory::find_argument(const Address& address) const
{
    if (address.offset % m_alignment != 0) {
        return fail(ErrorCode::invalid_argument,
                    "kernel argument at offset {} is misaligned: this device needs a multiple of {} bytes "
                    "(CL_DEVICE_MEM_BASE_ADDR_ALIGN)",
                    address.offset, m_alignment);
    }
    return find("kernel argument", address, 1);
}

Result<void> Memory::check(const char* what, const Address& address, std::uint64_t size) const
{
    const std::scoped_lock lock(m_mutex);
    if (const auto found = find(what, address, size); !found) return std::unexpected(found.error());
    return {};
}

Result<void> Memory::check_argument(const Address& address) const
{
    const std::scoped_lock lock(m_mutex);
    if (const auto found = find_argument(address); !found) return std::unexpected(found.error());
    return {};
}

Result<cl_mem> Memory::object(const char* what, const Address& address, std::uint64_t size) const
{
    const std::scoped_lock lock(m_mutex);
    const auto found = find(what, address, size);
    if (!found) return std::unexpected(found.error());
    if (!(*found)->object) {
        return fail(ErrorCode::invalid_argument,
                    "{}: {:#x} is an address that is reserved for captures, and has no memory", what, address.base);
    }
    return (*found)->object.get();
}

Result<cl_mem> Memory::argument(const Address& address)
{
    const std::scoped_lock lock(m_mutex);
    const auto found = find_argument(address);
    if (!found) return std::unexpected(found.error());
    Allocation& allocation = m_allocations.find(address.base)->second;
    if (!allocation.object) {
        return fail(ErrorCode::invalid_argument,
                    "kernel argument: {:#x} is an address that is reserved for captures, and has no memory",
                    address.base);
    }
    if (address.offset == 0) return allocation.object.get();
    if (const auto part = allocation.parts.find(address.offset); part != allocation.parts.end())
        return part->second.get();
    const cl_buffer_region region{address.offset, allocation.size - address.offset};
    auto part =
        create<Buffer>("clCreateSubBuffer", driver().clCreateSubBuffer, allocation.object.get(),
                       cl_mem_flags{CL_MEM_READ_WRITE}, cl_buffer_create_type{CL_BUFFER_CREATE_TYPE_REGION}, &region);
    if (!part) return std::unexpected(part.error());
    return allocation.parts.emplace(address.offset, std::move(*part)).first->second.get();
}

} // namespace warmgraph::backends::opencl
