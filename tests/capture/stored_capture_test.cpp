// The file of a capture: a file that was written can be read with the same contents, and damaged files are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "sample_capture.hpp"

namespace warmgraph::test::stored_capture_test {
namespace {

TEST(StoredCapture, IsReadAsItWasWritten)
{
    const auto read = take(decode_capture(encode(sample_capture())));
    EXPECT_EQ(read, sample_capture());
}

TEST(StoredCapture, DamageToAnyByteIsRefused)
{
    const Bytes file = encode(sample_capture());
    for (std::size_t i = 0; i < file.size(); ++i) {
        Bytes damaged = file;
        damaged[i] ^= std::byte{1};
        EXPECT_TRUE(failed_with(decode_capture(damaged), i >= 8 && i < 12 ? ErrorCode::stale : ErrorCode::corrupt))
            << "byte " << i;
    }
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_FALSE(decode_capture(ByteView{file}.first(size))) << size << " bytes";
}

TEST(StoredCapture, OfANewerFormatIsStale)
{
    Bytes file = encode(sample_capture());
    file[8] = std::byte{2};
    EXPECT_TRUE(failed_with(decode_capture(file), ErrorCode::stale, "format 2, expected 1"));
}

/// An attacker who can write the file can also seal it, so no count in it is trusted. If a file is accepted, it can be
/// written again.
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
            const auto again = take(decode_capture(encode(*read)));
            EXPECT_EQ(again, *read);
        }
    }
    EXPECT_GT(refused, 100U);
    EXPECT_FALSE(decode_capture(sealed_capture(Bytes(k_capture_fields))));
}

} // namespace
} // namespace warmgraph::test::stored_capture_test
