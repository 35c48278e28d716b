// Tests reading images ahead of their use: each image is returned as the source returns it, in whatever order images
// are requested.
#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_reader.hpp"

namespace warmgraph::replay::image_reader_test {
namespace {

class ImageReaderTest : public testing::Test {
protected:
    ImageReaderTest() : images(10)
    {
        for (std::size_t i = 0; i < images.size(); ++i) images[i].size = i;
    }
    [[nodiscard]] std::vector<const cachefmt::ImageRef*> wanted(std::size_t count) const
    {
        std::vector<const cachefmt::ImageRef*> result;
        for (std::size_t i = 0; i < count; ++i) result.push_back(&images[i]);
        return result;
    }
    [[nodiscard]] static Bytes contents(std::size_t i) { return Bytes(i, std::byte{7}); }

    std::vector<cachefmt::ImageRef> images;
    std::atomic<std::size_t> reads = 0;
    ImageSource source = [this](const cachefmt::ImageRef& image) -> Result<Bytes> {
        ++reads;
        return contents(image.size);
    };
};

TEST_F(ImageReaderTest, GivesEachOnce)
{
    ImageReader reader{source, wanted(images.size())};
    for (std::size_t i = 0; i < images.size(); ++i) EXPECT_EQ(reader.take(images[i]), contents(i));
    EXPECT_EQ(reads, images.size());
}

TEST_F(ImageReaderTest, ReadsOnAThreadOfItsOwn)
{
    std::atomic<bool> elsewhere = true;
    const auto here = std::this_thread::get_id();
    const ImageSource noting = [&](const cachefmt::ImageRef& image) -> Result<Bytes> {
        if (std::this_thread::get_id() == here) elsewhere = false;
        return contents(image.size);
    };
    ImageReader reader{noting, wanted(5)};
    for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(reader.take(images[i]));
    EXPECT_TRUE(elsewhere);
}

TEST_F(ImageReaderTest, SkipsThoseThatNobodyAsksFor)
{
    ImageReader reader{source, wanted(images.size())};
    for (const std::size_t i : {2U, 3U, 9U}) EXPECT_EQ(reader.take(images[i]), contents(i));
}

TEST_F(ImageReaderTest, ReadsWhatWasNotWantedWhenItIsAskedFor)
{
    ImageReader reader{source, wanted(4)};
    EXPECT_EQ(reader.take(images[8]), contents(8));
    EXPECT_EQ(reader.take(images[3]), contents(3));
    EXPECT_EQ(reader.take(images[0]), contents(0)) << "passed already";
    ImageReader few{source, wanted(1)};
    EXPECT_EQ(few.take(images[0]), contents(0));
}

TEST_F(ImageReaderTest, PassesErrorsOn)
{
    const ImageSource failing = [](const cachefmt::ImageRef& image) -> Result<Bytes> {
        if (image.size == 2) return fail(ErrorCode::not_found, "image 2 is missing");
        return contents(image.size);
    };
    ImageReader reader{failing, wanted(4)};
    EXPECT_TRUE(reader.take(images[0]));
    EXPECT_TRUE(reader.take(images[1]));
    const auto missing = reader.take(images[2]);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message, "image 2 is missing");
    EXPECT_TRUE(reader.take(images[3]));
}

TEST_F(ImageReaderTest, WithoutMemoryForItsThreadTheCallerReads)
{
    const auto reader_of = std::this_thread::get_id();
    const ImageSource throwing = [&](const cachefmt::ImageRef& image) -> Result<Bytes> {
        if (std::this_thread::get_id() != reader_of && image.size == 1) throw std::bad_alloc();
        return contents(image.size);
    };
    ImageReader reader{throwing, wanted(6)};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(reader.take(images[i]), contents(i));
}

TEST_F(ImageReaderTest, EndsInTheMiddle)
{
    for (std::size_t taken = 0; taken < 4; ++taken) {
        ImageReader reader{source, wanted(images.size())};
        for (std::size_t i = 0; i < taken; ++i) EXPECT_TRUE(reader.take(images[i]));
    }
    EXPECT_LE(reads, 4 * images.size());
}

TEST_F(ImageReaderTest, ReadsNotTooFarAhead)
{
    images.resize(40);
    ImageReader reader{source, wanted(images.size())};
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    EXPECT_LE(reads, 17U) << "sixteen that lie ready, and one in hand";
    EXPECT_TRUE(reader.take(images[0]));
}

TEST_F(ImageReaderTest, ReadsFewAheadThatAreLarge)
{
    const ImageSource large = [this](const cachefmt::ImageRef&) -> Result<Bytes> {
        ++reads;
        return Bytes(9U << 20U);
    };
    ImageReader reader{large, wanted(images.size())};
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    EXPECT_LE(reads, 3U) << "two are 18 MB, over the 16 that lie ready, and one may be in hand";
    for (const auto& image : images) EXPECT_TRUE(reader.take(image));
    EXPECT_EQ(reads, images.size());
}

} // namespace
} // namespace warmgraph::replay::image_reader_test
