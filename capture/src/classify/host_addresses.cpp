#include "classify/host_addresses.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <pthread.h>

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

/// Calls work below `room` bytes of stack. Gives the address below which its frames lie. Before the room all is filled down to
/// one address, the anchor, which the first call chooses `spare` bytes below itself: so the distance between two calls is the
/// difference of their rooms, though one caller's frames are larger than the other's. A call from deeper than that, or from
/// another part of the stack, chooses anew, a whole number of pages away. Not instrumented: AddressSanitizer would align the
/// space by the caller's frame.
[[gnu::noinline, gnu::no_sanitize_address]] void run_below(std::uint64_t& anchor, std::uint64_t spare,
                                                           std::uint64_t room, const std::function<void()>& work,
                                                           std::uint64_t& top)
{
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (anchor == 0 || frame < anchor || frame - anchor > 2 * k_spare) anchor = (frame - spare) / k_page * k_page;
    void* const space = __builtin_alloca(room + (frame - anchor) + 16);
    top = reinterpret_cast<std::uintptr_t>(space);
    asm volatile("" : : "r"(space) : "memory"); // else the compiler leaves unused space out
    work();
    asm volatile("" : : "r"(space) : "memory"); // after the call: it must not become a jump
}

/// Bytes [from, to) of a word that an address's own bytes are left in; the others are real.
struct Remains {
    std::size_t from, to;
};
constexpr std::array<Remains, 5> k_remains{{{0, 8}, {1, 8}, {2, 8}, {0, 4}, {1, 4}}}; // most telling first

/// A word, or the half of one at the end of a parameter.
struct Word {
    std::uint64_t value = 0;
    std::size_t width = 0;
};

Word word_at(const Bytes& bytes, std::size_t offset) noexcept
{
    Word word{0, std::min(sizeof(std::uint64_t), bytes.size() - offset)};
    std::memcpy(&word.value, bytes.data() + offset, word.width);
    return word;
}

/// The lower `bytes` bytes set.
constexpr std::uint64_t mask(std::size_t bytes) noexcept { return bytes >= 8 ? ~0ULL : (1ULL << 8 * bytes) - 1; }

bool is_in_stack(std::uint64_t word, const Remains& remains, const StackMovement& movement) noexcept
{
    const std::uint64_t overwritten = mask(remains.from);
    const std::uint64_t low = movement.bottom & ~overwritten, high = movement.top | overwritten;
    return ((word - low) & mask(remains.to)) < high - low;
}

bool went_down(std::uint64_t first, std::uint64_t again, const Remains& remains, std::uint64_t shift) noexcept
{
    const std::uint64_t left = mask(remains.to) & ~mask(remains.from);
    if (((first ^ again) & ~left) != 0) return false;
    const std::size_t bits = 8 * remains.from;
    const std::uint64_t distance = ((first & left) - (again & left)) >> bits & left >> bits;
    const std::uint64_t expected = shift >> bits & left >> bits;
    return distance == expected || (remains.from > 0 && distance == expected + 1); // a borrow from what was overwritten
}

/// One kernel parameter in all captures, the first two first.
class Parameter {
public:
    Parameter(std::vector<Bytes*> captures, const StackMovement& movement)
        : m_captures(std::move(captures)), m_movement(movement)
    {
    }
    std::size_t erase()
    {
        std::size_t erased = 0;
        for (const std::size_t start :
             {std::size_t{0}, std::size_t{4}}) // words of structs that are aligned to 4 as well
            for (std::size_t at = start; at + 4 <= m_captures[0]->size(); at += 8) erased += erase_at(at) ? 1 : 0;
        return erased;
    }

private:
    bool erase_at(std::size_t offset)
    {
        const Word first = word_at(*m_captures[0], offset), again = word_at(*m_captures[1], offset);
        if (first.value == again.value) return false;
        const auto is_left = [&](const Remains& remains) {
            if (remains.to > first.width || !went_down(first.value, again.value, remains, m_movement.shift))
                return false;
            return std::ranges::all_of(m_captures, [&](const Bytes* bytes) {
                return bytes == m_captures[1] || is_in_stack(word_at(*bytes, offset).value, remains, m_movement);
            });
        };
        const auto found = std::ranges::find_if(k_remains, is_left);
        if (found == k_remains.end()) return false;
        for (Bytes* bytes : m_captures)
            std::fill_n(bytes->begin() + static_cast<std::ptrdiff_t>(offset + found->from), found->to - found->from,
                        std::byte{0});
        return true;
    }
    std::vector<Bytes*> m_captures;
    const StackMovement& m_movement;
};

/// nullptr unless it is a by-value parameter of that size.
Bytes* parameter(Capture& capture, std::size_t node, std::size_t number, std::size_t size)
{
    if (node >= capture.graph.nodes.size()) return nullptr;
    auto* kernel = std::get_if<backends::RawKernel>(&capture.graph.nodes[node].work);
    if (kernel == nullptr || number >= kernel->params.size()) return nullptr;
    Bytes& value = kernel->params[number].value;
    return value.size() == size ? &value : nullptr;
}

std::vector<Capture*> all_of(Captures& captures)
{
    std::vector<Capture*> all{&captures.first, &*captures.again};
    if (captures.moved) all.push_back(&*captures.moved);
    for (ScalarProbe& probe : captures.probes) all.push_back(&probe.capture);
    return all;
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

void HostStack::run(StackDepth depth, const std::function<void()>& work)
{
    const bool is_deeper = depth == StackDepth::deeper;
    std::uint64_t& top = is_deeper ? m_deeper : m_usual;
    const bool known = has_room();
    run_below(m_anchor, known ? k_spare : 0, is_deeper && known ? k_shift : 0, work, top);
    if (!known) top = 0;
}

StackMovement HostStack::movement() const noexcept
{
    if (m_usual == 0 || m_deeper == 0 || m_deeper >= m_usual) return {};
    const std::uint64_t shift = m_usual - m_deeper;
    if ((shift & 0xff) == 0 || shift >> 16 == 0) return {}; // erased and overwritten bytes could not be told apart
    const std::uint64_t bottom = m_usual > k_reach ? std::max(m_bottom, m_usual - k_reach) : m_bottom;
    return {bottom, m_usual, shift};
}

std::size_t erase_host_addresses(Captures& captures, const StackMovement& movement)
{
    if (movement.shift == 0 || !captures.again) return 0;
    const auto all = all_of(captures);
    std::size_t erased = 0;
    for (std::size_t node = 0; node < captures.first.graph.nodes.size(); ++node) {
        const auto* kernel = std::get_if<backends::RawKernel>(&captures.first.graph.nodes[node].work);
        if (kernel == nullptr) continue;
        for (std::size_t i = 0; i < kernel->params.size(); ++i) {
            std::vector<Bytes*> values;
            values.reserve(all.size());
            for (Capture* capture : all) values.push_back(parameter(*capture, node, i, kernel->params[i].value.size()));
            if (std::ranges::find(values, nullptr) == values.end())
                erased += Parameter{std::move(values), movement}.erase();
        }
    }
    return erased;
}

} // namespace warmgraph
