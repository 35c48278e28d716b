// The state that the parts of the fake driver share: one lock, handles, contexts.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cuda.h>

namespace fake_cuda {

/// Every driver function holds this lock (entry_points.cpp), so no other code here locks. It is recursive, because
/// CUPTI's callbacks call driver functions.
[[nodiscard]] std::recursive_mutex& driver_mutex();

/// The live objects of one kind, by their handles. As in the driver, a dead or foreign handle leads to an error, and
/// not to a crash.
template <class T>
class Handles {
public:
    T* add(std::unique_ptr<T> object)
    {
        T* const handle = object.get();
        m_objects.emplace(handle, std::move(object));
        return handle;
    }
    [[nodiscard]] bool has(const T* handle) const { return m_objects.contains(handle); }
    bool erase(const T* handle) { return m_objects.erase(handle) != 0; }
    [[nodiscard]] long size() const { return static_cast<long>(m_objects.size()); }
    [[nodiscard]] const auto& objects() const { return m_objects; }

private:
    std::unordered_map<const T*, std::unique_ptr<T>> m_objects;
};

/// The number of live objects of each kind, with the kind's name.
[[nodiscard]] std::vector<std::pair<const char*, long>> live_objects();

/// Sets an error after a kernel accessed unallocated memory. As on a device, synchronising calls then return it from
/// now on.
void set_sticky_error(CUresult status);
[[nodiscard]] CUresult sticky_error();
/// Forgets the sticky error, and the device attributes that a test has set.
void forget_state();

/// Returns CUDA_ERROR_NOT_INITIALIZED before cuInit, and CUDA_ERROR_INVALID_CONTEXT when this thread has no context.
[[nodiscard]] CUresult require_context();
[[nodiscard]] long retained_contexts();
[[nodiscard]] long contexts_of_this_thread();

inline constexpr int k_architecture = 90; ///< the architecture, unless a test has set another one
[[nodiscard]] int device_architecture();
inline constexpr std::uint64_t k_total_memory = 64ULL << 30;
inline constexpr unsigned k_max_block = 1024;
inline constexpr int k_default_shared = 48 * 1024, k_largest_shared = 227 * 1024;

} // namespace fake_cuda

#define FAKE_CUDA_CHECK(expression)                                                                                    \
    do {                                                                                                               \
        if (const CUresult checked_status = (expression); checked_status != CUDA_SUCCESS) return checked_status;       \
    } while (false)
