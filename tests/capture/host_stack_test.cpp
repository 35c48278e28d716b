// Where on the host's stack captured work runs, and the bytes below that place.
#include <array>

#include <gtest/gtest.h>

#include <pthread.h>

#include "classify/host_stack.hpp"
#include "warmgraph/capture/clear_stack.hpp"

namespace warmgraph::test::host_stack_test {
namespace {

constexpr std::uint64_t k_stack_shift = 0x11240;

[[gnu::noinline]] std::uint64_t run_and_see(HostStack& stack, StackDepth depth)
{
    std::uint64_t frame = 0;
    stack.run({depth, Paint::none}, [&frame] { frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); });
    return frame;
}

template <std::size_t bytes>
[[gnu::noinline]] std::uint64_t run_and_see_below(HostStack& stack, StackDepth depth)
{
    std::array<std::byte, bytes> room;
    void* const here = room.data();
    asm volatile("" : : "r"(here) : "memory");
    const std::uint64_t frame = run_and_see(stack, depth);
    asm volatile("" : : "r"(here) : "memory");
    return frame;
}

TEST(HostStackTest, MovesTheFramesOfDeeperWorkByTheShift)
{
    HostStack stack;
    EXPECT_EQ(stack.movement().shift, 0U) << "nothing ran yet";
    const std::uint64_t first = run_and_see(stack, StackDepth::usual), again = run_and_see(stack, StackDepth::deeper);
    const StackMovement movement = stack.movement();
    EXPECT_EQ(first - again, movement.shift);
    EXPECT_EQ(movement.shift, k_stack_shift);
    EXPECT_LT(first, movement.top);
    EXPECT_GT(again, movement.bottom);
}

#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer moves the frames between the two by 32 bytes
TEST(HostStackTest, MovesThemByMoreWholePagesWhereTheCallerIsDeeperToo)
{
    HostStack stack;
    const std::uint64_t first = run_and_see(stack, StackDepth::usual);
    const std::uint64_t again = run_and_see_below<40'000>(stack, StackDepth::deeper);
    EXPECT_EQ(first - again, stack.movement().shift);
    EXPECT_GT(first - again, k_stack_shift);
    EXPECT_EQ((first - again) % 4096, k_stack_shift % 4096);
}
#endif

TEST(HostStackTest, PutsTheFramesOfCallersOfSeveralDepthsInOnePlace)
{
    // The place of the first caller decides, wherever the thread's stack begins in its page.
    const auto in_one_place = [] {
        HostStack stack;
        const std::uint64_t first = run_and_see(stack, StackDepth::usual);
        EXPECT_EQ(run_and_see_below<992>(stack, StackDepth::usual), first);
        EXPECT_EQ(run_and_see_below<10'016>(stack, StackDepth::usual), first);
        EXPECT_EQ(first - run_and_see_below<992>(stack, StackDepth::deeper), k_stack_shift);
    };
    in_one_place();
    for (int i = 0; i < 16; ++i) {
        void* const space = __builtin_alloca(static_cast<std::size_t>(256 * i) + 16);
        asm volatile("" : : "r"(space) : "memory");
        in_one_place();
    }
}

TEST(HostStackTest, RunsTheWorkAllTheSameWhereASmallStackHasNoRoomToSpare)
{
    struct Seen {
        std::uint64_t first = 0, again = 0;
        StackMovement movement{};
    } seen;
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256UL << 10), 0);
    pthread_t thread{};
    const auto start = [](void* out) -> void* {
        HostStack stack;
        auto& result = *static_cast<Seen*>(out);
        result.first = run_and_see(stack, StackDepth::usual);
        result.again = run_and_see(stack, StackDepth::deeper);
        result.movement = stack.movement();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, start, &seen), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
    EXPECT_NE(seen.first, 0U);
    EXPECT_EQ(seen.first, seen.again);
    EXPECT_EQ(seen.movement.shift, 0U);
}

#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer keeps local variables on stacks of its own
/// Returns a byte of a new frame before anything is written there.
[[gnu::noinline]] std::byte unwritten_byte(std::size_t below)
{
    std::array<std::byte, 64 << 10> room;
    std::byte* const all = room.data();
    asm volatile("" : : "r"(all) : "memory");
    return *static_cast<volatile std::byte*>(all + (room.size() - 1 - below));
}

TEST(HostStackTest, PaintsWhatTheWorkFindsBelowItself)
{
    HostStack stack;
    const auto found = [&stack](StackState state, std::size_t below) {
        std::byte byte{};
        stack.run(state, [&] { byte = unwritten_byte(below); });
        return byte;
    };
    for (const std::size_t below : {std::size_t{4096}, std::size_t{60} << 10}) {
        EXPECT_EQ(found({StackDepth::usual, Paint::one}, below), byte_of(Paint::one));
        EXPECT_EQ(found({StackDepth::deeper, Paint::other}, below), byte_of(Paint::other));
        EXPECT_EQ(found({StackDepth::usual, Paint::one}, below), byte_of(Paint::one));
        EXPECT_EQ(found({StackDepth::usual, Paint::none}, below), byte_of(Paint::one)) << "left as it was";
    }
    EXPECT_TRUE(stack.was_painted());
}

TEST(HostStackTest, IsClearedBelowItsCaller)
{
    HostStack stack;
    stack.run({StackDepth::usual, Paint::one}, [] {
        EXPECT_EQ(unwritten_byte(60 << 10), byte_of(Paint::one));
        capture::clear_stack_below();
        EXPECT_EQ(unwritten_byte(60 << 10), std::byte{0});
    });
}
#endif

} // namespace
} // namespace warmgraph::test::host_stack_test
