// The file of a capture: what is written is what is read, and what is damaged is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_capture.hpp"

namespace warmgraph::test::stored_capture_test {
namespace {

TEST(StoredCapture, IsReadAsItWasWritten)
{
    const auto read = decode_capture(encode(sample_capture()));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, sample_capture());
}

TEST(StoredCapture, DamageToAnyByteIsRefused)
{
    const Bytes file = encode(sample_capture());
    for (std::size_t i = 0; i < file.size(); ++i) {
        Bytes damaged = file;
        damaged[i] ^= std::byte{1};
        const auto read = decode_capture(damaged);
        ASSERT_FALSE(read) << "byte " << i;
        EXPECT_EQ(read.error().code, i >= 8 && i < 12 ? ErrorCode::stale : ErrorCode::corrupt) << "byte " << i;
    }
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_FALSE(decode_capture(ByteView{file}.first(size))) << size << " bytes";
}

TEST(StoredCapture, OfANewerFormatIsStale)
{
    Bytes file = encode(sample_capture());
    file[8] = std::byte{2};
    const auto read = decode_capture(file);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::stale);
    EXPECT_THAT(read.error().message, testing::HasSubstr("format 2, expected 1"));
}

/// Whoever can write the file can seal it, so no count in it is believed. What is accepted can be written again.
TEST(StoredCapture, ThatLiesIsRefusedOrMeansSomething)
{
    const Bytes file = encode(sample_capture());
    std::size_t refused = 0;
    for (std::size_t i = k_capture_fields; i < file.size(); ++i) {
        for (const auto value : {std::byte{0}, std::byte{0xff}}) {
            Bytes lying = file;
            lying[i] = value;
            const auto read = decode_capture(sealed_capture(lying));
            if (!read) {
                EXPECT_EQ(read.error().code, ErrorCode::corrupt);
                ++refused;
                continue;
            }
            const auto again = decode_capture(encode(*read));
            ASSERT_TRUE(again) << again.error().message;
            EXPECT_EQ(*again, *read);
        }
    }
    EXPECT_GT(refused, 100U);
    EXPECT_FALSE(decode_capture(sealed_capture(Bytes(k_capture_fields))));
}

} // namespace
} // namespace warmgraph::test::stored_capture_test
