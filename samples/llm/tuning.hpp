// Memory like that of one layer, for timing the kernels' geometries.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config.hpp"
#include <warmgraph/warmgraph.hpp>

namespace llm {

/// Rows of the timed prompt: between the smallest and the largest bucket.
inline constexpr std::uint32_t k_tuned_rows = 32;

/// Cheap to copy; copies share the memory. The numbers are arbitrary, because they do not affect a product's time.
class WorkMemory {
public:
    WorkMemory(const warmgraph::Device& device, std::uint32_t rows, const Config& config);

    [[nodiscard]] const warmgraph::Buffer& weights() const noexcept
    {
        return m_memory->weights;
    } ///< the largest matrix
    [[nodiscard]] const warmgraph::Buffer& wide() const noexcept
    {
        return m_memory->wide;
    } ///< [rows][hidden], only read
    [[nodiscard]] const warmgraph::Buffer& q() const noexcept { return m_memory->q; }
    [[nodiscard]] const warmgraph::Buffer& k() const noexcept { return m_memory->k; }
    [[nodiscard]] const warmgraph::Buffer& v() const noexcept { return m_memory->v; }
    [[nodiscard]] const warmgraph::Buffer& x() const noexcept { return m_memory->x; }
    [[nodiscard]] const warmgraph::Buffer& gate() const noexcept { return m_memory->gate; }
    [[nodiscard]] const warmgraph::Buffer& up() const noexcept { return m_memory->up; }
    [[nodiscard]] const warmgraph::Buffer& down() const noexcept { return m_memory->down; }
    /// All buffers that the kernels write.
    [[nodiscard]] std::vector<warmgraph::TuningOutput> outputs() const;

private:
    struct Memory {
        warmgraph::Buffer weights, wide, q, k, v, x, gate, up, down;
    };
    std::shared_ptr<const Memory> m_memory;
};

} // namespace llm
