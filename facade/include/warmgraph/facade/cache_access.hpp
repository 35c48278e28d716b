// Private parts of Cache, for the C interface and for tests.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "warmgraph/cache.hpp"

namespace warmgraph {

class FileSystem;

struct CacheAccess {
    /// Opens a cache on another file system.
    [[nodiscard]] static Cache open(const CacheOptions& options, FileSystem& files);
    [[nodiscard]] static const std::shared_ptr<Cache::Impl>& impl(const Cache& cache) noexcept { return cache.m_impl; }
    /// Wraps a callable that was made from a function of another language. `code`: an address in the binary that
    /// identifies the function's code; Cache::wrap has the rest.
    [[nodiscard]] static Function wrap(Cache& cache, std::string name, const Device& device, Spec spec,
                                       Callable callable, const void* code)
    {
        return cache.wrap_code(std::move(name), device, std::move(spec), std::move(callable), code);
    }
    /// Wraps a pair of such callables; Cache::wrap_pair has the rest.
    [[nodiscard]] static Pair wrap_pair(Cache& cache, std::string name, const Device& device, PairSpec spec,
                                        Callable forward, Callable backward, const void* forward_code,
                                        const void* backward_code)
    {
        return cache.wrap_pair_code(std::move(name), device, std::move(spec), std::move(forward), std::move(backward),
                                    forward_code, backward_code);
    }
    /// Stops keeping device code, for the whole process, until the next miss or Device::prepare_recording. The
    /// functions of these caches must be settled. Returns why it does not stop; empty: it stopped. Thread-safe.
    /// REQUIRES: none is null.
    [[nodiscard]] static std::string pause_recording(std::span<const Cache* const> caches);
};

} // namespace warmgraph
