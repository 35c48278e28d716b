// Where on the host's stack a callable runs while it is captured, and what lies there before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace warmgraph {

/// Between two captures. 0 bytes: not known, nothing can be told.
struct StackMovement {
    std::uint64_t bottom = 0, top = 0; ///< the frames of the first capture were in here
    std::uint64_t shift = 0;           ///< bytes that those of the other one were lower
};

enum class StackDepth : std::uint8_t { usual, deeper };

/// What the stack below the callable is filled with before it runs, 128 KiB of it: a byte that still holds it in a
/// parameter was never written. Two paints, so that neither passes for a number that is there by chance. They differ in
/// every bit, so that single bits can be told as well.
enum class Paint : std::uint8_t { none, one, other };

/// Eight of them are no pointer, no index and no count that anybody has.
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

/// What a callable finds below itself.
struct StackState {
    StackDepth depth = StackDepth::usual;
    Paint paint = Paint::one;
};

/// The stack of the thread that makes it, for work at two depths, over two paints.
class HostStack {
public:
    HostStack();
    /// On this thread. Where the stack has no room to spare, or is none of the thread's own (a coroutine's), the usual
    /// depth and no paint.
    void run(const StackState& state, const std::function<void()>& work);
    /// With zeros, below the caller. Nothing where the stack has no room to spare.
    void clear_below() const noexcept;
    /// Whether all runs were painted as asked.
    [[nodiscard]] bool was_painted() const noexcept { return m_painted; }
    /// From the last run at the usual depth to the last deeper one.
    [[nodiscard]] StackMovement movement() const noexcept;

private:
    [[nodiscard]] bool has_room() const noexcept;

    std::uint64_t m_bottom = 0, m_end = 0;   // 0: unknown
    std::uint64_t m_anchor = 0;              // what the stack is filled down to before all work; 0: nothing ran yet
    std::uint64_t m_usual = 0, m_deeper = 0; // where the work's frames began
    bool m_painted = true;
};

} // namespace warmgraph
