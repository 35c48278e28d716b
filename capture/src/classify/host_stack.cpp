#include "classify/host_stack.hpp"

#include <algorithm>

#include <pthread.h>

#include "warmgraph/capture/clear_stack.hpp"

namespace warmgraph {

namespace {

/// Bytes. A multiple of 64, so that frames which align themselves for vectors go as far as all others.
constexpr std::uint64_t k_shift = 0x11240;
static_assert(k_shift % 64 == 0 && (k_shift & 0xff) != 0 && (k_shift >> 8 & 0xff) != 0 && k_shift >> 16 != 0);
constexpr std::uint64_t k_room = 8 * k_shift; ///< bytes that must be left: a callable that just fits must go on fitting
constexpr std::uint64_t k_page = 4096;
constexpr std::uint64_t k_spare = 4 * k_page; ///< bytes that later callers may be deeper than the first one
/// Bytes below the top in which addresses are looked for: an unlimited stack would make any number look like one.
constexpr std::uint64_t k_reach = 64ULL << 20;

constexpr std::uint64_t k_painted = 128ULL
                                    << 10; ///< bytes: the frames of cuDNN's and CUTLASS's launchers are within 64 KiB
static_assert(k_spare + k_shift + k_painted < k_room / 2);

/// Fills what the next calls of the caller use as their frames. Not with memset: AddressSanitizer would ask whose
/// memory that is.
[[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] void paint_below(std::byte byte)
{
    constexpr std::uint64_t k_everywhere = 0x0101'0101'0101'0101;
    const std::uint64_t word = k_everywhere * std::to_integer<std::uint64_t>(byte);
    auto* const space = static_cast<volatile std::uint64_t*>(__builtin_alloca(k_painted));
    for (std::size_t i = 0; i < k_painted / sizeof word; ++i) space[i] = word;
}

/// Calls work below `room` bytes of stack. Gives the address below which its frames lie. Before the room all is filled
/// down to one address, the anchor, which the first call chooses `spare` bytes below itself: so the distance between
/// two calls is the difference of their rooms, though one caller's frames are larger than the other's. A call from
/// deeper than that, or from another part of the stack, chooses anew, a whole number of pages away. Not instrumented:
/// AddressSanitizer would align the space by the caller's frame.
[[gnu::noinline, gnu::no_sanitize_address]] void run_below(std::uint64_t& anchor, std::uint64_t spare,
                                                           std::uint64_t room, Paint paint,
                                                           const std::function<void()>& work, std::uint64_t& top)
{
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (anchor == 0 || frame < anchor || frame - anchor > 2 * k_spare) anchor = (frame - spare) / k_page * k_page;
    void* const space = __builtin_alloca(room + (frame - anchor) + 16);
    top = reinterpret_cast<std::uintptr_t>(space);
    asm volatile("" : : "r"(space) : "memory"); // else the compiler leaves unused space out
    if (paint != Paint::none) paint_below(byte_of(paint));
    work();
    asm volatile("" : : "r"(space) : "memory"); // after the call: it must not become a jump
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
    static const thread_local HostStack stack; // of the main thread its end is read from a file
    stack.clear_below();
}

StackMovement HostStack::movement() const noexcept
{
    if (m_usual == 0 || m_deeper == 0 || m_deeper >= m_usual) return {};
    const std::uint64_t shift = m_usual - m_deeper;
    if ((shift & 0xff) == 0 || shift >> 16 == 0) return {}; // erased and overwritten bytes could not be told apart
    const std::uint64_t bottom = m_usual > k_reach ? std::max(m_bottom, m_usual - k_reach) : m_bottom;
    return {bottom, m_usual, shift};
}

} // namespace warmgraph
