#include "classify/host_stack.hpp"

#include <algorithm>

#include <pthread.h>

#include "warmgraph/capture/clear_stack.hpp"

namespace warmgraph {

namespace {

/// In bytes. A multiple of 64, so that frames that are aligned for vectors move by the same distance as others.
constexpr std::uint64_t k_shift = 0x11240;
static_assert(k_shift % 64 == 0 && (k_shift & 0xff) != 0 && (k_shift >> 8 & 0xff) != 0 && k_shift >> 16 != 0);
/// Bytes that must be left, so that a callable that fits on the stack still fits.
constexpr std::uint64_t k_room = 8 * k_shift;
constexpr std::uint64_t k_page = 4096;
constexpr std::uint64_t k_spare = 4 * k_page; ///< later callers may be this many bytes deeper than the first caller
/// Addresses are looked for in this many bytes below the top; without this limit, any number would look like an address
/// of an unlimited stack.
constexpr std::uint64_t k_reach = 64ULL << 20;

constexpr std::uint64_t k_painted = 128ULL
                                    << 10; ///< bytes; the frames of cuDNN's and CUTLASS's launchers fit in 64 KiB
static_assert(k_spare + k_shift + k_painted < k_room / 2);

/// Fills the stack that the caller's next calls use for their frames. Does not use memset, because AddressSanitizer
/// would check whether the memory may be written.
[[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] void paint_below(std::byte byte)
{
    constexpr std::uint64_t k_everywhere = 0x0101'0101'0101'0101;
    const std::uint64_t word = k_everywhere * std::to_integer<std::uint64_t>(byte);
    auto* const space = static_cast<volatile std::uint64_t*>(__builtin_alloca(k_painted));
    for (std::size_t i = 0; i < k_painted / sizeof word; ++i) space[i] = word;
}

/// Runs `work` below `room` bytes of stack. Sets `top` to the address below which the frames of `work` lie. First fills
/// the stack down to the anchor, an address that the first call chooses `spare` bytes below itself. So the distance
/// between two calls is the difference of their rooms, even if their callers' frames differ in size. A call from deeper
/// than the anchor, or from another part of the stack, chooses a new anchor, a whole number of pages away. Not
/// instrumented: AddressSanitizer would align the space by the caller's frame.
[[gnu::noinline, gnu::no_sanitize_address]] void run_below(std::uint64_t& anchor, std::uint64_t spare,
                                                           std::uint64_t room, Paint paint,
                                                           const std::function<void()>& work, std::uint64_t& top)
{
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (anchor == 0 || frame < anchor || frame - anchor > 2 * k_spare) anchor = (frame - spare) / k_page * k_page;
    void* const space = __builtin_alloca(room + (frame - anchor) + 16);
    top = reinterpret_cast<std::uintptr_t>(space);
    asm volatile("" : : "r"(space) : "memory"); // otherwise the compiler removes the unused space
    if (paint != Paint::none) paint_below(byte_of(paint));
    work();
    asm volatile("" : : "r"(space) : "memory"); // keeps the call from becoming a jump
}

} // namespace

HostStack::HostStack()
{
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* bottom = nullptr;
    std::size_t size = 0;
    if (pthread_attr_getstack(&attributes, &bottom, &size) == 0) {
        m_bottom = reinterpret_cast<std::uintptr_t>(bottom);
        m_end = m_bottom + size;
    }
    pthread_attr_destroy(&attributes);
}

bool HostStack::has_room() const noexcept
{
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return here < m_end && here > m_bottom && here - m_bottom >= k_room;
}

void HostStack::run(const StackState& state, const std::function<void()>& work)
{
    const bool is_deeper = state.depth == StackDepth::deeper;
    std::uint64_t& top = is_deeper ? m_deeper : m_usual;
    const bool known = has_room();
    run_below(m_anchor, known ? k_spare : 0, is_deeper && known ? k_shift : 0, known ? state.paint : Paint::none, work,
              top);
    if (known) return;
    top = 0;
    if (state.paint != Paint::none) m_painted = false;
}

void HostStack::clear_below() const noexcept
{
    if (has_room()) paint_below(std::byte{0});
}

void capture::clear_stack_below() noexcept
{
    static const thread_local HostStack stack; // made once: the end of the main thread's stack is read from a file
    stack.clear_below();
}

StackMovement HostStack::movement() const noexcept
{
    if (m_usual == 0 || m_deeper == 0 || m_deeper >= m_usual) return {};
    const std::uint64_t shift = m_usual - m_deeper;
    // With such a shift, erased bytes look like overwritten bytes.
    if ((shift & 0xff) == 0 || shift >> 16 == 0) return {};
    const std::uint64_t bottom = m_usual > k_reach ? std::max(m_bottom, m_usual - k_reach) : m_bottom;
    return {bottom, m_usual, shift};
}

} // namespace warmgraph
