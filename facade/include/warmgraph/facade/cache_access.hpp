// Private parts of Cache, for the C interface and for tests.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "warmgraph/cache.hpp"

namespace warmgraph {

class FileSystem;

struct CacheAccess {
    /// Opens a cache on another file system.
    [[nodiscard]] static Cache open(const CacheOptions& options, FileSystem& files);
    [[nodiscard]] static const std::shared_ptr<Cache::Impl>& impl(const Cache& cache) noexcept { return cache.m_impl; }
    /// Stops keeping device code, for the whole process, until the next miss or Device::prepare_recording. The functions of
    /// these caches must be settled. Returns why it does not stop; empty: it stopped. Thread-safe. REQUIRES: none is null.
    [[nodiscard]] static std::string pause_recording(std::span<const Cache* const> caches);
};

} // namespace warmgraph
