// Address ranges for captures that cost almost no memory: one piece of physical memory is mapped repeatedly (measured).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "device/core.hpp"
#include "device/far_addresses.hpp"

namespace warmgraph::backends::cuda {

/// Thread-safe. The ranges must be mapped: the driver refuses copies and fills into unmapped ranges, even in a capture.
class Shadows {
public:
    explicit Shadows(Core& core) noexcept : m_core(core) {}
    Shadows(const Shadows&) = delete;
    Shadows& operator=(const Shadows&) = delete;
    ~Shadows();

    /// Returns the start of a range of at least `size` bytes, at far addresses (FarPlace) if the driver follows the
    /// request. Unmapped bytes of varying number follow, so that shadows never touch and their distances differ from
    /// those of the caller's memory.
    [[nodiscard]] Result<std::uint64_t> reserve(std::uint64_t size);
    [[nodiscard]] Result<void> release(std::uint64_t start);

private:
    struct Chunk; // physical memory
    struct Shadow {
        std::uint64_t reserved = 0; ///< bytes, guard included
        std::uint64_t mapped = 0;   ///< bytes from the start
        std::shared_ptr<const Chunk> chunk;
        std::optional<FarPlace> place;                   ///< empty if the driver chose the address
        std::pair<std::uint64_t, std::uint64_t> slots{}; ///< [first, end) in the field; empty outside the field
    };
    /// One large reservation, cut into slots. No other memory shares the upper 32 bits of their addresses.
    struct Field {
        std::uint64_t start = 0, size = 0; ///< size 0: the driver refused
        std::uint64_t first = 0, slots = 0;
        std::set<std::uint64_t> taken;
    };
    [[nodiscard]] Result<std::uint64_t> granularity();
    [[nodiscard]] Result<std::shared_ptr<const Chunk>> chunk_for(std::uint64_t size);
    [[nodiscard]] Result<std::shared_ptr<const Chunk>> make_chunk(std::uint64_t size);
    /// Reserves `shadow.reserved` bytes.
    [[nodiscard]] Result<std::uint64_t> reserve_range(Shadow& shadow);
    [[nodiscard]] Field reserve_field() const;
    /// nullopt: the field is full.
    [[nodiscard]] std::optional<std::uint64_t> take_of_field(Shadow& shadow);
    [[nodiscard]] Result<void> map(std::uint64_t start, Shadow& shadow, std::uint64_t size);
    [[nodiscard]] Result<void> undo(std::uint64_t start, const Shadow& shadow);

    Core& m_core;
    std::mutex m_mutex; // guards the members below
    std::uint64_t m_granularity = 0;
    std::uint64_t m_count = 0;
    std::optional<Field> m_field;            ///< reserved after the driver ignored a request
    std::shared_ptr<const Chunk> m_smallest; ///< kept; larger chunks are freed with the last shadow that uses them
    std::map<std::uint64_t, std::weak_ptr<const Chunk>> m_chunks; ///< chunks by size
    std::map<std::uint64_t, Shadow> m_shadows;                    ///< shadows by start address
};

} // namespace warmgraph::backends::cuda
