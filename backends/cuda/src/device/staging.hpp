// Large uploads of memory that is not page-locked.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/core.hpp"

namespace warmgraph::backends::cuda {

/// Copies in pieces; each lane has its own thread, stream and page-locked memory. The driver's own copy uses one
/// thread, which reads host memory at a fraction of the bus's speed (docs/measurements.md, "Start from the cache"). The
/// first large upload makes the lanes, which are kept and use 12 MiB of page-locked memory. Thread-safe.
class Staging {
public:
    explicit Staging(const Core& core);
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    ~Staging();

    static constexpr std::size_t k_piece = std::size_t{2} << 20;
    static constexpr std::size_t k_least = 4 * k_piece; ///< the driver does smaller uploads itself

    /// Like transfer(): blocks until the copy is done. driver_failed: a copy failed, and part of the target is written.
    [[nodiscard]] Result<void> upload(CUdeviceptr to, ByteView bytes);

private:
    struct Lane;
    class Pieces;
    [[nodiscard]] bool is_worth_it(ByteView bytes) const;
    [[nodiscard]] bool make_lanes();
    [[nodiscard]] Result<void> run(Pieces& pieces);

    const Core& m_core;
    std::mutex m_mutex; // guards the lanes during a whole upload
    std::vector<std::unique_ptr<Lane>> m_lanes;
    bool m_is_impossible = false;
};

} // namespace warmgraph::backends::cuda
