// Tests that text from outside is made safe for a terminal.
#include <array>

#include <gtest/gtest.h>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::test::printable_test {
namespace {

TEST(Printable, LeavesWhatIsSeenAsItIs)
{
    for (const char* text : {"", "plain", "umläut 日本語 é", "a'b\"c\\", "emoji 🚀"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesControlsAndWhatIsNoUtf8)
{
    EXPECT_EQ(printable("a\x1b[31mb\n\t\x7f"), "a\\x1b[31mb\\x0a\\x09\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");
    EXPECT_EQ(printable("\xff\xc0\xaf\xed\xa0\x80"), "\\xff\\xc0\\xaf\\xed\\xa0\\x80");
}

/// Promise H19: U+202E lets a terminal show "exe.txt" for "txt.exe". Other characters hide a part of a name, or break a
/// line.
TEST(Printable, EscapesWhatChangesHowTheRestIsShown)
{
    constexpr std::array k_unseen{"\u00ad", "\u061c", "\u180e",     "\u200b",     "\u200d",    "\u200e", "\u200f",
                                  "\u2028", "\u2029", "\u202a",     "\u202e",     "\u2060",    "\u2066", "\u2069",
                                  "\ufeff", "\ufff9", "\U0001d173", "\U000e0001", "\U000e0041"};
    for (const char* text : k_unseen) {
        const std::string shown = printable(text);
        EXPECT_TRUE(shown.starts_with("\\x")) << shown;
        for (const char c : shown) EXPECT_LT(static_cast<unsigned char>(c), 0x7F) << shown;
        EXPECT_TRUE(is_plain(text)) << "stored names may have it: " << shown;
    }
    EXPECT_EQ(printable("a\u202etxt.exe"), "a\\xe2\\x80\\xaetxt.exe");
    EXPECT_EQ(printable("\u2027\u202f\u2070"), "\u2027\u202f\u2070") << "beside the ranges";
}

TEST(Printable, IsCutWithDots) { EXPECT_EQ(printable("abcdef", 3), "abc..."); }

TEST(Printable, OfLinesKeepsTheirEnds)
{
    EXPECT_EQ(printable_lines("a\x1b\nb\n\n"), "a\\x1b\nb\n\n");
    EXPECT_EQ(printable_lines(""), "");
    EXPECT_EQ(printable_lines("abcdef\nab", 3), "abc...\nab");
}

TEST(Printable, TellsPlainText)
{
    EXPECT_TRUE(is_plain("umläut"));
    EXPECT_FALSE(is_plain("a\nb"));
    EXPECT_FALSE(is_plain("\xff"));
    EXPECT_FALSE(is_plain("\xc2\x9b"));
}

} // namespace
} // namespace warmgraph::test::printable_test
