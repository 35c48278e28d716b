// Tests the text that identifies a kernel: its code without comments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warmgraph/autotune/code_text.hpp"

namespace warmgraph::autotune::code_text_test {
namespace {

TEST(CodeText, LosesItsComments)
{
    const std::string plain = "int a;\nint b;\n";
    for (const char* text :
         {"int a; // from /home/ann/kernels.cl:7\nint b;\n", "int a; /* ann */\nint b;\n",
          "// /tmp/build/x\nint a;\n/* two\n   lines */\nint b;\n", "int a;\nint b; // its end\\\n goes on\n",
          "   // indented\nint a;\nint b;\n", "int a; // \"no string\nint b;\n", "int a; /* ' */\nint b;\n"})
        EXPECT_EQ(without_comments(text), plain) << text;
    EXPECT_EQ(without_comments(plain), plain);
    EXPECT_EQ(without_comments(""), "");
    EXPECT_EQ(without_comments("int a; // no end of line"), "int a;\n");
}

TEST(CodeText, KeepsWhatOnlyLooksLikeAComment)
{
    for (const char* text : {"s = \"// no comment\";\n", "s = \"a\\\"// no\";\n",
                             "c = '\"'; d = '\\''; t = \"/* */\";\n", "#include <a//b>\n", "#  include \"x/*y*/z\"\n",
                             "R\"x(// no )\" /* no )x\" + 1\n", "int million = 1'000'000; char slash = '/';\n",
                             "f(1'0 + \"'//x\");\n", "a = b / *c;\n", "a = 3 /\n/ b;\n", "/* without an end\nint a;\n"})
        EXPECT_EQ(without_comments(text), text);
}

TEST(CodeText, DoesNotJoinWhatACommentHadKeptApart)
{
    EXPECT_EQ(without_comments("int/**/a;"), "int a;\n");
    EXPECT_EQ(without_comments("a /**/ b"), "a   b\n");
}

// A line that ends with a backslash continues the macro. If the comment line was removed, the macro would also contain
// `+2`.
TEST(CodeText, KeepsTheEndOfAMacro)
{
    EXPECT_NE(without_comments("#define A 1 \\\n// ends here\n+2\n"), without_comments("#define A 1 \\\n+2\n"));
}

TEST(CodeText, OfOtherCodeIsAnotherText)
{
    EXPECT_NE(without_comments("int a = 1; // one\n"), without_comments("int a = 2; // one\n"));
}

} // namespace
} // namespace warmgraph::autotune::code_text_test
