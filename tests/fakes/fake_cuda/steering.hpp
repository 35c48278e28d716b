// Controls the fake CUDA driver in tests. WARMGRAPH_FAKE_CUDA is the path of its library (warmgraph_fake_cuda_test).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda.h>
#include <dlfcn.h>

#include "fake_cuda.h"
#include "warmgraph/backends/cuda.hpp"

namespace warmgraph::test {

/// Controls the fake driver. A process has only one.
class FakeCuda {
public:
    /// `library`: the path of the fake driver, or of a copy of it, which is then a separate driver.
    explicit FakeCuda(const std::string& library = WARMGRAPH_FAKE_CUDA)
        : m_library(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL))
    {
        if (m_library == nullptr) throw std::runtime_error(::dlerror());
        ::setenv("WARMGRAPH_WARM_UP", "0", 1); // off, because calls of a second thread would be counted, too
        reset();
    }

    /// Options that use one library as the driver, NVRTC and CUPTI.
    [[nodiscard]] static backends::CudaOptions options()
    {
        return {WARMGRAPH_FAKE_CUDA, WARMGRAPH_FAKE_CUDA, WARMGRAPH_FAKE_CUDA};
    }
    void fail_at(long call, CUresult status) const
    {
        find<decltype(::fake_cuda_fail_at)>("fake_cuda_fail_at")(call, status);
    }
    /// Makes calls fail as fake_cuda_fail() does. If `times` is 0, all later calls fail.
    void fail(const std::string& entry, long first, long times, CUresult status) const
    {
        find<decltype(::fake_cuda_fail)>("fake_cuda_fail")(entry.c_str(), first, times, status);
    }
    [[nodiscard]] bool was_hit() const { return find<decltype(::fake_cuda_was_hit)>("fake_cuda_was_hit")() != 0; }
    [[nodiscard]] long calls() const { return find<decltype(::fake_cuda_calls)>("fake_cuda_calls")(); }
    [[nodiscard]] long calls_of(const std::string& entry) const
    {
        long count = 0;
        for (long i = 0; i < calls(); ++i) count += call(i) == entry ? 1 : 0;
        return count;
    }
    /// The name of the function in call number `index`, which counts from 0. Empty when there is no such call.
    [[nodiscard]] std::string call(long index) const
    {
        const char* const name = find<decltype(::fake_cuda_call)>("fake_cuda_call")(index);
        return name != nullptr ? name : "";
    }
    /// The numbers of the calls that a test makes fail in turn (1 is the first call). They are chosen from the calls so
    /// far: the first 200, every seventh of the others, and the first two and the last of each entry point.
    [[nodiscard]] std::vector<long> fault_positions() const
    {
        std::map<std::string, std::vector<long>> by_entry;
        std::set<long> chosen;
        for (long nth = 1; nth <= calls(); ++nth) {
            by_entry[call(nth - 1)].push_back(nth);
            if (nth <= 200 || nth % 7 == 0) chosen.insert(nth);
        }
        for (const auto& [entry, all] : by_entry) chosen.insert({all.front(), all[all.size() > 1 ? 1 : 0], all.back()});
        return {chosen.begin(), chosen.end()};
    }
    /// The numbers of live objects by kind, as a text.
    [[nodiscard]] std::string live() const { return find<decltype(::fake_cuda_live_text)>("fake_cuda_live_text")(); }
    /// Makes an external semaphore that counts upwards. It lives as long as the pointer.
    [[nodiscard]] std::shared_ptr<void> semaphore(std::uint64_t value) const
    {
        auto* const destroy = find<decltype(::fake_cuda_destroy_semaphore)>("fake_cuda_destroy_semaphore");
        return {find<decltype(::fake_cuda_make_semaphore)>("fake_cuda_make_semaphore")(value), destroy};
    }
    [[nodiscard]] std::uint64_t value_of(const std::shared_ptr<void>& semaphore) const
    {
        return find<decltype(::fake_cuda_semaphore_value)>("fake_cuda_semaphore_value")(semaphore.get());
    }
    /// Signals the semaphore, as the host or another API does.
    void signal(const std::shared_ptr<void>& semaphore, std::uint64_t value) const
    {
        find<decltype(::fake_cuda_set_semaphore)>("fake_cuda_set_semaphore")(semaphore.get(), value);
    }
    [[nodiscard]] unsigned long long instantiate_flags() const
    {
        return find<decltype(::fake_cuda_instantiate_flags)>("fake_cuda_instantiate_flags")();
    }
    /// Sets an attribute until the reset. A device reads its attributes when it is opened.
    void set_attribute(CUdevice_attribute attribute, int value) const
    {
        find<decltype(::fake_cuda_set_attribute)>("fake_cuda_set_attribute")(attribute, value);
    }
    /// Sets the version until the reset. Each backend reads the version when it loads the driver.
    void set_driver_version(int version) const
    {
        find<decltype(::fake_cuda_set_driver_version)>("fake_cuda_set_driver_version")(version);
    }
    /// The kernels for bulk memory work that load and run on devices that are opened from now on: none, those of their
    /// text, or also those of a fat binary.
    enum class Kernels : std::uint8_t { refused, as_text, as_text_and_fatbin };
    void take_bulk_kernels(Kernels taken) const
    {
        find<decltype(::fake_cuda_take_bulk_kernels)>("fake_cuda_take_bulk_kernels")(static_cast<int>(taken));
    }
    void take_bulk_kernels(bool taken) const { take_bulk_kernels(taken ? Kernels::as_text : Kernels::refused); }
    void reset() const { find<decltype(::fake_cuda_reset)>("fake_cuda_reset")(); }

    /// Finds a driver function as any user of the driver does.
    template <class Function>
    [[nodiscard]] Function* entry(const char* name) const
    {
        void* address = nullptr;
        find<decltype(::cuGetProcAddress)>("cuGetProcAddress_v2")(name, &address, CUDA_VERSION, 0, nullptr);
        if (address == nullptr) throw std::runtime_error(std::string("the fake driver has no ") + name);
        return reinterpret_cast<Function*>(address);
    }

private:
    template <class Function>
    [[nodiscard]] Function* find(const char* name) const
    {
        void* const address = ::dlsym(m_library, name);
        if (address == nullptr) throw std::runtime_error(::dlerror());
        return reinterpret_cast<Function*>(address);
    }
    void* m_library;
};

/// A program with the kernels of the conformance suite (for the syntax see fake_cuda/source.hpp).
inline constexpr const char* k_fake_cuda_program = "kernel iota(memory x, value n)\n"
                                                   "kernel add_scalar(memory x, value amount, value n)\n"
                                                   "kernel scale(memory x, value factor, value n)\n"
                                                   "kernel copy(memory to, memory from, value n)\n"
                                                   "kernel add(memory out, memory a, memory b, value n)\n"
                                                   "kernel sum(memory out, memory x, local scratch, value n)\n";

} // namespace warmgraph::test
