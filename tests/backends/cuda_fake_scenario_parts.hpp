// Helpers that the scenarios share.
#pragma once

#include <algorithm>

#include "cuda_fake_scenarios.hpp"

namespace warmgraph::backends::test {

using warmgraph::test::FakeCuda;

inline constexpr std::int32_t k_count = 64;
inline constexpr std::uint64_t k_bytes = k_count * sizeof(std::int32_t);

// Evaluates a Result. Gives `name` its value, or returns its error.
#define TAKE(name, expression)                                                                                         \
    auto name##_result = (expression);                                                                                 \
    if (!name##_result) return std::unexpected(name##_result.error());                                                 \
    auto& name = *name##_result
#define DO(expression)                                                                                                 \
    do {                                                                                                               \
        if (auto done = (expression); !done) return std::unexpected(done.error());                                     \
    } while (false)

/// Another user of the driver. It calls the fake's functions, and reports faults in its calls as the backend does.
class OtherUser {
public:
    explicit OtherUser(const FakeCuda& fake) : m_fake(fake) {}
    template <class Function, class... Args>
    Result<void> operator()(const char* name, Args... args) const
    {
        const CUresult status = m_fake.entry<Function>(name)(args...);
        if (status == CUDA_SUCCESS) return {};
        return fail(status == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::driver_failed,
                    "{} failed: {}", name, static_cast<int>(status));
    }

private:
    const FakeCuda& m_fake;
};
#define CALL(user, name, ...) DO((user).template operator()<decltype(::name)>(#name, __VA_ARGS__))

/// An object that another user of the driver made. It is destroyed at the end of the scope.
template <class Handle, class Destroy>
class OwnedHandle {
public:
    OwnedHandle(Handle handle, Destroy* destroy) : m_handle(handle), m_destroy(destroy) {}
    OwnedHandle(const OwnedHandle&) = delete;
    OwnedHandle& operator=(const OwnedHandle&) = delete;
    ~OwnedHandle() { static_cast<void>(m_destroy(m_handle)); }

private:
    Handle m_handle;
    Destroy* m_destroy;
};

/// Device memory that is released at the end of the scope.
class OwnedMemory {
public:
    OwnedMemory(Device& device, const MemoryRef& memory) : m_device(device), m_memory(memory) {}
    OwnedMemory(const OwnedMemory&) = delete;
    OwnedMemory& operator=(const OwnedMemory&) = delete;
    ~OwnedMemory() { m_device.release(m_memory); }

private:
    Device& m_device;
    MemoryRef m_memory;
};

inline RawParam pointer(const Address& address) { return {ParamKind::memory, {}, address, 0}; }
inline RawParam number(std::int32_t value)
{
    RawParam param;
    append(param.value, value);
    return param;
}

inline RawKernel add_scalar(Module& module, const Address& x, std::int32_t amount)
{
    return {&module, "add_scalar", {1, 1, 1}, {k_count, 1, 1}, {pointer(x), number(amount), number(k_count)}};
}

inline Bytes all_of(std::int32_t value)
{
    Bytes bytes;
    for (std::int32_t i = 0; i < k_count; ++i) append(bytes, value);
    return bytes;
}

inline Result<void> expect_all(Device& device, const Address& address, std::int32_t value)
{
    std::vector<std::int32_t> values(k_count);
    DO(device.download(std::as_writable_bytes(std::span(values)), address));
    if (std::ranges::all_of(values, [&](std::int32_t one) { return one == value; })) return {};
    return fail(ErrorCode::internal, "{}: {} in place of {}", k_wrong, values[0], value);
}

} // namespace warmgraph::backends::test
