// Before each capture, the library fills the stack with bytes of its own choice (the paint). These tests have parameter
// bytes that still hold the paint. Each capture has another paint.
#include "classify/host_stack.hpp"
#include "classify/unwritten_bytes.hpp"
#include "flat_captures.hpp"
#include "number_decl.hpp"

namespace warmgraph::test::unwritten_bytes_test {
namespace {

class UnwrittenBytes : public FlatCaptures {
protected:
    /// Makes captures. `make` returns the parameter's bytes for the number of the capture, which starts at 1, and for
    /// its paint.
    template <class Make>
    void capture_painted(Make make)
    {
        int captured = 0;
        capture_all([&](const Places&) {
            ++captured;
            return make(captured, byte_of(captured == 2 ? Paint::other : Paint::one));
        });
    }
    [[nodiscard]] std::vector<std::size_t> offsets() const
    {
        std::vector<std::size_t> result;
        for (const UnwrittenByte& byte : unwritten_bytes(captures)) result.push_back(byte.offset);
        return result;
    }
};

TEST_F(UnwrittenBytes, HoldThePaintOfTheirCapture)
{
    capture_painted([](int, std::byte paint) { return Bytes{std::byte{1}, paint, paint, std::byte{2}, paint}; });
    EXPECT_EQ(offsets(), (std::vector<std::size_t>{1, 2, 4}));
}

TEST_F(UnwrittenBytes, AreNoConstantsOfThatValue)
{
    capture_painted([](int, std::byte) { return Bytes{byte_of(Paint::one), byte_of(Paint::other)}; });
    EXPECT_TRUE(offsets().empty());
}

TEST_F(UnwrittenBytes, AreNoCounterThatMeetsThePaintTwice)
{
    const int step = std::to_integer<int>(byte_of(Paint::other)) - std::to_integer<int>(byte_of(Paint::one));
    capture_painted([step](int captured, std::byte) {
        return Bytes{static_cast<std::byte>(std::to_integer<int>(byte_of(Paint::one)) + (captured - 1) * step)};
    });
    EXPECT_TRUE(offsets().empty());
}

TEST_F(UnwrittenBytes, WereWrittenWhereOneProbeHasSomethingElse)
{
    interface.scalars.push_back(number("n", DType::i32));
    capture_painted([](int captured, std::byte paint) { return Bytes{paint, captured == 5 ? std::byte{0} : paint}; });
    ASSERT_EQ(captures.probes.size(), 3U);
    EXPECT_EQ(offsets(), (std::vector<std::size_t>{0}));
}

TEST_F(UnwrittenBytes, BecomeZeroAndTheGraphIsNoLongerTheDriversOwn)
{
    capture_painted([](int, std::byte paint) { return Bytes{paint, byte_of(Paint::one), std::byte{3}}; });
    for (CapturedGraph* capture : {&captures.first, &*captures.again}) {
        capture->graph.native = std::make_shared<int>(1);
        clear(capture->graph, {{0, 0, 0}});
        EXPECT_EQ(std::get<backends::RawKernel>(capture->graph.nodes[0].work).params[0].value,
                  (Bytes{std::byte{0}, byte_of(Paint::one), std::byte{3}}));
        EXPECT_EQ(capture->graph.native, nullptr);
    }
}

TEST_F(UnwrittenBytes, OfAnotherStructureAreLeft)
{
    capture_painted([](int, std::byte paint) { return Bytes{paint}; });
    const auto unwritten = unwritten_bytes(captures);
    ASSERT_EQ(unwritten.size(), 1U);
    captures.moved->graph.nodes.clear();
    EXPECT_TRUE(offsets().empty());
    clear(captures.moved->graph, unwritten); // the graph has no nodes
    clear(captures.first.graph, {{0, 0, 7}, {0, 9, 0}});
    EXPECT_EQ(std::get<backends::RawKernel>(captures.first.graph.nodes[0].work).params[0].value,
              Bytes{byte_of(Paint::one)});
}

/// All captures have the same paint here. It is chosen after all other bytes.
class UnwrittenBits : public UnwrittenBytes {
protected:
    template <class Make>
    std::vector<UnwrittenByte> found(Make make)
    {
        capture_painted(make);
        std::vector<CapturedGraph> more(2, captures.first);
        for (int i = 0; i < 2; ++i)
            std::get<backends::RawKernel>(more[i].graph.nodes[0].work).params[0].value =
                make(4 + i, byte_of(Paint::one));
        return unwritten_bits(captures, more);
    }
    static std::byte with(std::byte paint, int mask, int bits)
    {
        return (paint & ~static_cast<std::byte>(mask)) | static_cast<std::byte>(bits);
    }
};

TEST_F(UnwrittenBits, AreThoseBesideABitField)
{
    for (int bits = 0; bits < 8; ++bits) { // the written bits may be equal to bits of a paint
        const auto bytes = found([&](int, std::byte paint) { return Bytes{std::byte{1}, with(paint, 7, bits)}; });
        ASSERT_EQ(bytes, (std::vector<UnwrittenByte>{{0, 0, 1, std::byte{0xF8}}}));
        for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved}) {
            clear(capture->graph, bytes);
            EXPECT_EQ(std::get<backends::RawKernel>(capture->graph.nodes[0].work).params[0].value,
                      (Bytes{std::byte{1}, static_cast<std::byte>(bits)}));
        }
    }
}

TEST_F(UnwrittenBits, OfAWholeByteAreAllOfThem)
{
    EXPECT_EQ(found([](int, std::byte paint) { return Bytes{paint}; }), (std::vector<UnwrittenByte>{{0, 0, 0}}));
}

TEST_F(UnwrittenBits, AreNoFlagThatAlternates)
{
    for (const int first : {0, 1})
        EXPECT_TRUE(found([&](int captured, std::byte) {
                        return Bytes{static_cast<std::byte>((captured + first) % 2)};
                    }).empty());
}

TEST_F(UnwrittenBits, AreNoAddressThatMovesWithTheDepth)
{
    EXPECT_TRUE(found([](int captured, std::byte) {
                    return Bytes{captured == 2 || captured == 4 ? std::byte{0x58} : std::byte{0xA7}};
                }).empty());
}

TEST_F(UnwrittenBits, AreNothingComputedFromPaint)
{
    EXPECT_TRUE(found([](int, std::byte paint) { return Bytes{~paint}; }).empty());
}

TEST_F(UnwrittenBytes, AreCountedByWord)
{
    EXPECT_EQ(count_words({}), 0U);
    EXPECT_EQ(count_words({{0, 0, 1}, {0, 0, 7}, {0, 0, 8}, {0, 1, 8}, {3, 1, 8}}), 4U);
}

} // namespace
} // namespace warmgraph::test::unwritten_bytes_test
