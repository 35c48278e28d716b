// Address ranges for captures that cost next to no memory: one piece of physical memory mapped over and over (measured).
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

/// Thread-safe. An unmapped reservation would not do: copies and fills into it are refused, even in a capture.
class Shadows {
public:
    explicit Shadows(Core& core) noexcept : m_core(core) {}
    Shadows(const Shadows&) = delete;
    Shadows& operator=(const Shadows&) = delete;
    ~Shadows();

    /// The start of a range of at least `size` bytes, at far addresses (FarPlace) where the driver follows the wish. Behind it lie unmapped bytes, another number of them each time: two
    /// shadows never touch, and no two are equally far apart as the memory they stand for.
    [[nodiscard]] Result<std::uint64_t> reserve(std::uint64_t size);
    [[nodiscard]] Result<void> release(std::uint64_t start);

private:
    struct Chunk; // physical memory
    struct Shadow {
        std::uint64_t reserved = 0; ///< bytes, guard included
        std::uint64_t mapped = 0;   ///< bytes from the start
        std::shared_ptr<const Chunk> chunk;
        std::optional<FarPlace> place;                   ///< none where the driver chose
        std::pair<std::uint64_t, std::uint64_t> slots{}; ///< [first, end) of the field; empty where it lies elsewhere
    };
    /// One large reservation, cut into slots. Nothing else has their upper 32 bits.
    struct Field {
        std::uint64_t start = 0, size = 0; ///< 0 bytes: the driver gave none
        std::uint64_t first = 0, slots = 0;
        std::set<std::uint64_t> taken;
    };
    [[nodiscard]] Result<std::uint64_t> granularity();
    [[nodiscard]] Result<std::shared_ptr<const Chunk>> chunk_for(std::uint64_t size);
    [[nodiscard]] Result<std::shared_ptr<const Chunk>> make_chunk(std::uint64_t size);
    /// `shadow.reserved` bytes.
    [[nodiscard]] Result<std::uint64_t> reserve_range(Shadow& shadow);
    [[nodiscard]] Field reserve_field() const;
    /// nullopt: there is no room in it.
    [[nodiscard]] std::optional<std::uint64_t> take_of_field(Shadow& shadow);
    [[nodiscard]] Result<void> map(std::uint64_t start, Shadow& shadow, std::uint64_t size);
    [[nodiscard]] Result<void> undo(std::uint64_t start, const Shadow& shadow);

    Core& m_core;
    std::mutex m_mutex; // guards all below
    std::uint64_t m_granularity = 0;
    std::uint64_t m_count = 0;
    std::optional<Field> m_field;            ///< reserved where the driver did not follow a wish
    std::shared_ptr<const Chunk> m_smallest; ///< kept; larger ones go with the last shadow that uses them
    std::map<std::uint64_t, std::weak_ptr<const Chunk>> m_chunks; ///< by size
    std::map<std::uint64_t, Shadow> m_shadows;                    ///< by start
};

} // namespace warmgraph::backends::cuda
