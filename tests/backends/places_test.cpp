// Tests the values in raw nodes of each kind, and the places of the values.
#include <vector>

#include <gtest/gtest.h>

#include "warmgraph/backends/node_places.hpp"

namespace warmgraph::backends::places_test {
namespace {

RawWork kernel()
{
    RawKernel work;
    work.params = {
        {ParamKind::value, Bytes(8), {}, 0}, {ParamKind::memory, {}, {1, 16}, 0}, {ParamKind::local, {}, {}, 64}};
    work.attributes = {{1, Bytes(32)}};
    return work;
}

RawWork batch()
{
    using enum MemoryOperationKind;
    return RawMemoryOperations{{{write_32, {1, 0}, 7, 0}, {barrier, {}, 0, 0}}};
}

std::vector<NodePlace> places_of(const RawWork& work)
{
    std::vector<NodePlace> places;
    for_each_place(work, [&](const NodePlace& place, const auto& content) {
        places.push_back(place);
        const auto again = content_at(work, place);
        EXPECT_EQ(content.address, again.address);
        EXPECT_EQ(content.bytes, again.bytes);
        EXPECT_EQ(content.number, again.number);
        EXPECT_EQ((content.address != nullptr) + (content.bytes != nullptr) + (content.number != nullptr), 1);
    });
    return places;
}

TEST(Places, AreWhatANodeMayHoldThatFollowsSomething)
{
    using enum NodePlaceKind;
    using Places = std::vector<NodePlace>;
    EXPECT_EQ(places_of(kernel()), (Places{{parameter, 0}, {parameter, 1}, {attribute, 0}})); // has no local memory
    EXPECT_EQ(places_of(RawCopy{}), (Places{{source, 0}, {destination, 0}}));
    EXPECT_EQ(places_of(RawFill{}), (Places{{destination, 0}}));
    EXPECT_EQ(places_of(batch()), (Places{{operation, 0}, {operation, 1}}));
    EXPECT_EQ(places_of(RawSemaphores{SemaphoreAction::wait, {{5, 1, 0}, {6, 2, 0}}}),
              (Places{{semaphore, 0}, {semaphore, 1}}));
    for (const RawWork& none :
         {RawWork{RawEmpty{}}, RawWork{RawEventRecord{3}}, RawWork{RawEventWait{3}}, RawWork{RawHost{}}})
        EXPECT_EQ(places_of(none), Places{});
}

TEST(Places, ThatANodeDoesNotHaveHoldNothing)
{
    const auto holds = [](const RawWork& work, const NodePlace& place) {
        const auto content = content_at(work, place);
        return content.address != nullptr || content.bytes != nullptr || content.number != nullptr;
    };
    using enum NodePlaceKind;
    EXPECT_FALSE(holds(kernel(), {parameter, 2}));
    EXPECT_FALSE(holds(kernel(), {parameter, 3}));
    EXPECT_FALSE(holds(kernel(), {attribute, 1}));
    EXPECT_FALSE(holds(kernel(), {source, 0}));
    EXPECT_FALSE(holds(RawFill{}, {source, 0}));
    EXPECT_FALSE(holds(batch(), {operation, 2}));
    EXPECT_TRUE(holds(batch(), {operation_value, 0}));
    EXPECT_FALSE(holds(RawSemaphores{}, {semaphore, 0}));
}

TEST(Places, AreWrittenThroughTheirContent)
{
    RawWork work = RawCopy{};
    *content_at(work, {NodePlaceKind::destination}).address = {2, 32};
    EXPECT_EQ(std::get<RawCopy>(work).destination, (Address{2, 32}));
}

TEST(Handles, AreThoseOfEventsAndSemaphores)
{
    const auto next = [](HandleKind kind, std::uint64_t& handle) { handle += kind == HandleKind::event ? 100 : 200; };
    RawWork record = RawEventRecord{1}, wait = RawEventWait{2}, copy = RawCopy{},
            semaphores = RawSemaphores{SemaphoreAction::signal, {{5, 1, 0}, {6, 2, 0}}};
    for (RawWork* work : {&record, &wait, &copy, &semaphores}) for_each_handle(*work, next);
    EXPECT_EQ(record, RawWork{RawEventRecord{101}});
    EXPECT_EQ(wait, RawWork{RawEventWait{102}});
    EXPECT_EQ(copy, RawWork{RawCopy{}});
    EXPECT_EQ(semaphores, RawWork(RawSemaphores{SemaphoreAction::signal, {{205, 1, 0}, {206, 2, 0}}}));
}

} // namespace
} // namespace warmgraph::backends::places_test
