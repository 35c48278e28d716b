// The conformance suite (conformance_*_test.cpp). It is compiled once for each backend, with that backend's subjects().
// Kernels work on i32, and the programs of all backends have the same kernels (see subjects).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "expect_error.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::test {

/// One device under test: how to open it, and its program.
struct Subject {
    std::string name;
    std::function<Result<std::shared_ptr<Device>>()> open;
    std::string program; ///< iota, add_scalar, scale, copy, add and sum, as in the fake; CUDA's sum uses shared memory
    std::string broken_program;
    std::string broken_log; ///< a part of the compiler's log for `broken`
};
[[nodiscard]] std::vector<Subject> subjects();

inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

inline std::string name_of(const testing::TestParamInfo<Subject>& info) { return info.param.name; }

inline constexpr std::uint32_t k_count = 1024; ///< number of elements in a test's buffer
inline constexpr std::uint32_t k_block = 64;

inline RawParam memory(const Address& address) { return {ParamKind::memory, {}, address, 0}; }
inline RawParam local(std::uint64_t size) { return {ParamKind::local, {}, {}, size}; }
inline RawParam value(std::int32_t number)
{
    RawParam param;
    append(param.value, number);
    return param;
}

class Conformance : public testing::TestWithParam<Subject> {
protected:
    void SetUp() override
    {
        auto opened = GetParam().open();
        ASSERT_TRUE(succeeded(opened));
        device = *opened;
        auto made = device->create_stream();
        ASSERT_TRUE(succeeded(made));
        stream = std::move(*made);
    }
    void TearDown() override
    {
        for (const MemoryRef& memory : m_memory) device->release(memory);
    }

    /// The module of the program, which is compiled in the first call.
    Module& module()
    {
        if (!m_module) m_module = take(device->compiler().compile(GetParam().program, ""));
        return *m_module;
    }
    Address allocate(std::uint64_t bytes = k_count * sizeof(std::int32_t))
    {
        m_memory.push_back(take(device->allocate(bytes)));
        return m_memory.back().address;
    }
    Address allocate(const std::vector<std::int32_t>& values)
    {
        const Address address = allocate(values.size() * sizeof(std::int32_t));
        EXPECT_TRUE(succeeded(device->upload(address, std::as_bytes(std::span(values)))));
        return address;
    }
    std::vector<std::int32_t> read(const Address& address, std::size_t count = k_count)
    {
        std::vector<std::int32_t> values(count);
        EXPECT_TRUE(succeeded(device->download(std::as_writable_bytes(std::span(values)), address)));
        return values;
    }
    void finish() { ASSERT_TRUE(succeeded(stream->synchronize())); }

    RawKernel kernel(std::string name, std::vector<RawParam> params)
    {
        return {&module(), std::move(name), {k_count / k_block, 1, 1}, {k_block, 1, 1}, std::move(params)};
    }
    RawKernel add_scalar(const Address& x, std::int32_t amount)
    {
        return kernel("add_scalar", {memory(x), value(amount), value(k_count)});
    }
    RawKernel scale(const Address& x, std::int32_t factor)
    {
        return kernel("scale", {memory(x), value(factor), value(k_count)});
    }
    RawKernel add(const Address& out, const Address& a, const Address& b)
    {
        return kernel("add", {memory(out), memory(a), memory(b), value(k_count)});
    }
    /// Whether the pointers that kernels get must be aligned.
    [[nodiscard]] bool needs_alignment() const { return device->limits().memory_alignment > sizeof(std::int32_t); }
    /// The node that the captured launch `work` must become. With flat addresses, pointers are bytes, and local
    /// parameters are counted as the launch's shared bytes.
    [[nodiscard]] RawKernel as_captured(RawKernel work) const
    {
        if (!device->limits().flat_addresses) return work;
        std::vector<RawParam> params;
        for (RawParam& param : work.params) {
            if (param.kind == ParamKind::local) {
                work.shared_bytes += static_cast<std::uint32_t>(param.local_size);
                continue;
            }
            if (param.kind == ParamKind::memory) {
                RawParam pointer;
                append(pointer.value, param.address.flat());
                param = pointer;
            }
            params.push_back(param);
        }
        work.params = std::move(params);
        return work;
    }
    template <class Body>
    RawGraph capture(Body body)
    {
        EXPECT_TRUE(succeeded(stream->begin_capture()));
        body();
        return take(stream->end_capture());
    }
    void replay(const RawGraph& graph)
    {
        const auto exec = take(device->instantiate(graph));
        ASSERT_TRUE(succeeded(exec->launch(*stream)));
        finish();
    }

    std::shared_ptr<Device> device;
    std::unique_ptr<Stream> stream;

private:
    std::unique_ptr<Module> m_module;
    std::vector<MemoryRef> m_memory;
};

inline std::vector<std::int32_t> all(std::int32_t value, std::size_t count = k_count)
{
    return std::vector<std::int32_t>(count, value);
}

} // namespace warmgraph::backends::test
