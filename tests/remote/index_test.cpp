// The index objects of HTTP remotes: their bytes, also hostile ones.
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "http/index.hpp"

namespace warmgraph::test::index_test {
namespace {

using remote::http::decode_index;
using remote::http::encode;
using remote::http::Index;
using remote::http::IndexItem;

IndexItem item(const std::string& name, std::size_t head = 0)
{
    return {name, 100'000, 7, Bytes(head, std::byte{0x5a})};
}
Index sample() { return {item("a", 3), item("model/rank0/decode"), item("c.best_config", remote::k_most_head)}; }

TEST(RemoteIndex, ComesBackFromItsBytes)
{
    for (const Index& index : {Index{}, sample()}) EXPECT_EQ(take(decode_index(encode(index))), index);
}

TEST(RemoteIndex, HasTheLatestItemOfEachNameAndTheLatestNames)
{
    Index index = sample();
    add(index, item("a", 9));
    EXPECT_EQ(index.size(), 3U);
    EXPECT_EQ(index.back(), item("a", 9));
    EXPECT_TRUE(remove(index, "a"));
    EXPECT_FALSE(remove(index, "a"));
    for (std::size_t i = 0; i < remote::http::k_most_items; ++i) add(index, item(std::to_string(i)));
    EXPECT_EQ(index.size(), remote::http::k_most_items);
    EXPECT_EQ(index.front().name, "0");
    EXPECT_EQ(take(decode_index(encode(index))), index);
}

TEST(RemoteIndex, LeavesOutTheHeadsOfTheOldestItemsWhereAllAreTooLong)
{
    Index index;
    for (std::size_t i = 0; i < 2100; ++i) add(index, item(std::to_string(i), remote::k_most_head));
    const Bytes bytes = encode(index);
    EXPECT_LE(bytes.size(), remote::http::k_most_index_bytes);
    const Index back = take(decode_index(bytes));
    ASSERT_EQ(back.size(), index.size());
    EXPECT_TRUE(back.front().head.empty());
    EXPECT_EQ(back.back(), index.back());
}

TEST(RemoteIndex, IsRefusedWhereverItIsCut)
{
    const Bytes bytes = encode({item("a", 3), item("b", 40)});
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_TRUE(failed_with(decode_index(ByteView(bytes).first(size)), ErrorCode::corrupt)) << size;
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_TRUE(failed_with(decode_index(longer), ErrorCode::corrupt, "1 bytes after its last item"));
}

TEST(RemoteIndex, IsRefusedIfItLies)
{
    const auto changed = [](std::size_t at, std::initializer_list<int> values) {
        Bytes bytes = encode({item("a", 3), item("b", 3)});
        for (const int value : values) bytes[at++] = static_cast<std::byte>(value);
        return decode_index(bytes);
    };
    // The magic's 8 bytes, the count's 4, then of the first item: 2 of the name's size, the name, 8 + 8, 4 of the head's size.
    EXPECT_TRUE(failed_with(changed(0, {'X'}), ErrorCode::corrupt, "magic"));
    EXPECT_TRUE(failed_with(changed(7, {2}), ErrorCode::corrupt, "version"));
    EXPECT_TRUE(failed_with(changed(8, {0xff, 0xff, 0xff, 0xff}), ErrorCode::corrupt, "4294967295 items"));
    EXPECT_TRUE(failed_with(changed(8, {3}), ErrorCode::corrupt)) << "an item too few";
    EXPECT_TRUE(failed_with(changed(8, {1}), ErrorCode::corrupt, "after its last item"));
    EXPECT_TRUE(failed_with(changed(12, {0, 0}), ErrorCode::corrupt));
    EXPECT_TRUE(failed_with(changed(12, {0xff, 0xff}), ErrorCode::corrupt, "ends inside"));
    EXPECT_TRUE(failed_with(changed(14, {'\n'}), ErrorCode::corrupt, "a name of 1 bytes"));
    EXPECT_TRUE(failed_with(changed(14, {'b'}), ErrorCode::corrupt, "the name b twice"));
    EXPECT_TRUE(failed_with(changed(31, {0, 0, 0, 0x80}), ErrorCode::corrupt, "a head of 2147483648 bytes"));
    EXPECT_TRUE(failed_with(changed(15, {2, 0, 0, 0}), ErrorCode::corrupt, "a head of 3 bytes of an object of 2"));
    EXPECT_TRUE(failed_with(decode_index(Bytes(remote::http::k_most_index_bytes + 1)), ErrorCode::corrupt, "at most"));
}

} // namespace
} // namespace warmgraph::test::index_test
