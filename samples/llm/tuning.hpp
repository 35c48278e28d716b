// What the kernels' geometries are timed on: memory like that of one layer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config.hpp"
#include <warmgraph/warmgraph.hpp>

namespace llm {

/// Rows of the prompt that is timed: between the smallest bucket and the largest.
inline constexpr std::uint32_t k_tuned_rows = 32;

/// Cheap to copy; copies share the memory. Made-up numbers: a product takes as long with any.
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
    /// All that is written.
    [[nodiscard]] std::vector<warmgraph::TuningOutput> outputs() const;

private:
    struct Memory {
        warmgraph::Buffer weights, wide, q, k, v, x, gate, up, down;
    };
    std::shared_ptr<const Memory> m_memory;
};

} // namespace llm
