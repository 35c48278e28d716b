// Large uploads of memory that is not page-locked.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/core.hpp"

namespace warmgraph::backends::cuda {

/// Copies in pieces, each lane with a thread, a stream and page-locked memory of its own. The driver does that with one thread, which
/// reads the host's memory at a fraction of the bus's speed (figures: docs/measurements.md, "Start from the cache").
/// The lanes are made with the first large upload and kept, 12 MiB of page-locked memory. Safe from several threads.
class Staging {
public:
    explicit Staging(const Core& core);
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    ~Staging();

    static constexpr std::size_t k_piece = std::size_t{2} << 20;
    static constexpr std::size_t k_least = 4 * k_piece; ///< smaller uploads are the driver's

    /// As transfer(): `bytes` may be used again when it returns. driver_failed where a copy fails; then some of the target is written.
    [[nodiscard]] Result<void> upload(CUdeviceptr to, ByteView bytes);

private:
    struct Lane;
    class Pieces;
    [[nodiscard]] bool is_worth_it(ByteView bytes) const;
    [[nodiscard]] bool make_lanes();
    [[nodiscard]] Result<void> run(Pieces& pieces);

    const Core& m_core;
    std::mutex m_mutex; // guards the lanes, for as long as an upload takes
    std::vector<std::unique_ptr<Lane>> m_lanes;
    bool m_is_impossible = false;
};

} // namespace warmgraph::backends::cuda
