// The place and the contents of the host's stack below a callable that is captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace warmgraph {

/// The stack's movement between two captures. All 0: not known.
struct StackMovement {
    std::uint64_t bottom = 0, top = 0; ///< the first capture's frames were in this range
    std::uint64_t shift = 0;           ///< how many bytes lower the other capture's frames were
};

enum class StackDepth : std::uint8_t { usual, deeper };

/// The pattern that fills 128 KiB of stack below the callable before it runs. A parameter's byte that still holds the
/// paint was never written. There are two paints, because a number may equal one paint by chance. They differ in every
/// bit, so that single bits can be checked too.
enum class Paint : std::uint8_t { none, one, other };

/// Eight equal paint bytes are not a plausible pointer, index or count.
[[nodiscard]] constexpr std::byte byte_of(Paint paint) noexcept
{
    switch (paint) {
    case Paint::none: break;
    case Paint::one: return std::byte{0xA7};
    case Paint::other: return std::byte{0x58};
    }
    return std::byte{0};
}
static_assert(byte_of(Paint::other) == ~byte_of(Paint::one));

/// The stack below a callable when it begins.
struct StackState {
    StackDepth depth = StackDepth::usual;
    Paint paint = Paint::one;
};

/// The stack of the thread that constructs this object, for work at two depths over two paints.
class HostStack {
public:
    HostStack();
    /// Runs the work on this thread. If the stack has too little room, or is not the thread's own (a coroutine), uses
    /// the usual depth and no paint.
    void run(const StackState& state, const std::function<void()>& work);
    /// Fills the stack below the caller with zeros. Does nothing if the stack has too little room.
    void clear_below() const noexcept;
    /// Whether every run had the paint that it asked for.
    [[nodiscard]] bool was_painted() const noexcept { return m_painted; }
    /// The movement from the last run at the usual depth to the last run at the deeper depth.
    [[nodiscard]] StackMovement movement() const noexcept;

private:
    [[nodiscard]] bool has_room() const noexcept;

    std::uint64_t m_bottom = 0, m_end = 0; // the thread's stack; 0: unknown
    // Work begins after the stack is filled down to this address; 0: nothing ran yet.
    std::uint64_t m_anchor = 0;
    std::uint64_t m_usual = 0, m_deeper = 0; // addresses at which the work's frames began
    bool m_painted = true;
};

} // namespace warmgraph
