// Tests how the headers of a source are found without a compiler: the result may have more headers than are used, but
// never fewer.
#include <fstream>

#include "include_scanner.hpp"
#include "matchers.hpp"
#include "temp_dir.hpp"
#include "warmgraph/precompile/headers.hpp"

namespace warmgraph::precompile::headers_test {
namespace {

namespace fs = std::filesystem;

TEST(Includes, AreFoundHoweverTheyAreWritten)
{
    EXPECT_THAT(scan_includes("#include \"a.h\"\n  #  include <b/c.h> // why\n%:include \"d.h\"").names,
                ElementsAre("a.h", "b/c.h", "d.h"));
    EXPECT_THAT(scan_includes("?\?=include \"a.h\"\nx = a ? b : c;").names, ElementsAre("a.h")) << "a trigraph";
    EXPECT_THAT(scan_includes("/* first */ #/**/include/* here */\"a.h\"").names, ElementsAre("a.h"));
    EXPECT_THAT(scan_includes("#inc\\\nlude \\\r\n \"a.h\"").names, ElementsAre("a.h"));
    EXPECT_THAT(scan_includes("#import \"a.h\"\n#include_next <b.h>\n#embed \"c.bin\"").names,
                ElementsAre("a.h", "b.h", "c.bin"));
    EXPECT_THAT(scan_includes("#if __has_include(<a.h>) || __has_include( \"b.h\" )\n#endif").names,
                ElementsAre("a.h", "b.h"));
    EXPECT_THAT(scan_includes("// #include \"a.h\"").names, ElementsAre("a.h")) << "more never hurts";
    EXPECT_THAT(scan_includes("#includes \"a.h\"\n#define include \"b.h\"\n#include \"cut\n.h\"").names, IsEmpty());
}

TEST(Includes, WhoseFileAMacroNamesAreTold)
{
    EXPECT_EQ(scan_includes("int x;\n  #include CONFIG\n").computed, "#include CONFIG");
    EXPECT_EQ(scan_includes("/* */ #include CONFIG").computed, "#include CONFIG");
    EXPECT_EQ(scan_includes("%:include CONFIG").computed, "%:include CONFIG");
    EXPECT_EQ(scan_includes("asm(\".incbin \\\"table\\\"\");").computed, ".incbin") << "the assembler reads it";
    for (const char* text : {"// #include guards\n", "/* an\n #include guard */", "const char* t = \"#include X\";",
                             "x = 1'000; // #include Y", "int a; #include Z"})
        EXPECT_EQ(scan_includes(text).computed, "") << text;
    EXPECT_EQ(scan_includes("x = 1'000'000;\n#include CONFIG\n").computed, "#include CONFIG");
}

TEST(Includes, OddTextsEndTheScan)
{
    for (const char* text : {"", "#", "%:", "#include", "#include \"", "#include <", "#/*", "__has_include", "\"",
                             "'\\", "/*", "__has_include(", "\\", "#include /*"})
        EXPECT_THAT(scan_includes(text).names, IsEmpty()) << text;
}

TEST(ProgramOptions, AreTakenApart)
{
    const Options options =
        parse_options("-I /a -I/b --include-path=/c --include-path /d -isystem /e -include x.h -D 'A=b c' -O3");
    EXPECT_THAT(options.folders,
                ElementsAre(Options::Folder{"-I", "/a"}, Options::Folder{"-I", "/b"},
                            Options::Folder{"--include-path", "/c"}, Options::Folder{"--include-path", "/d"},
                            Options::Folder{"-isystem", "/e"}));
    EXPECT_THAT(options.files, ElementsAre("x.h"));
    EXPECT_THAT(options.words, ElementsAre("-D", "A=b c", "-O3"));
    EXPECT_EQ(options.why_unknown, "");
    EXPECT_THAT(parse_options("--options-file flags.txt").why_unknown, HasSubstr("'--options-file'"));
    EXPECT_THAT(parse_options("--use-pch=x.pch").why_unknown, HasSubstr("only the compiler reads"));
    EXPECT_THAT(parse_options("-include-pch x.pch").why_unknown, HasSubstr("'-include-pch'"));
    EXPECT_EQ(parse_options("-I"), (Options{{}, {{"-I", ""}}}));
}

class HeaderFiles : public testing::Test {
protected:
    void write(const std::string& name, const std::string& text) const
    {
        fs::create_directories((m_dir.path() / name).parent_path());
        std::ofstream(m_dir.path() / name) << text;
    }
    [[nodiscard]] Headers headers(const std::string& source, const std::string& more = "") const
    {
        return headers_of(source, parse_options("-I " + (m_dir.path() / "include").string() + more));
    }
    warmgraph::test::TempDir m_dir;
};

TEST_F(HeaderFiles, CountByNameAndContents)
{
    write("include/a.h", "#include \"deep/b.h\"\n");
    write("include/deep/b.h", "#define B 1\n");
    const Headers before = headers("#include \"a.h\"\n#include <cuda_fp16.h>");
    ASSERT_EQ(before.found.size(), 2U) << "the compiler's own is not found";
    EXPECT_EQ(before.found[0].name, "a.h");
    EXPECT_EQ(before.found[1], (Header{"deep/b.h", sha256(as_bytes("#define B 1\n"))}));
    write("include/deep/b.h", "#define B 2\n");
    EXPECT_NE(headers("#include \"a.h\""), before);
}

TEST_F(HeaderFiles, AreTheSameAtAnotherPath)
{
    write("include/a.h", "#define A 1\n");
    write("moved/include/a.h", "#define A 1\n");
    EXPECT_EQ(headers("#include <a.h>"),
              headers_of("#include <a.h>", parse_options("-I" + (m_dir.path() / "moved/include").string())));
}

TEST_F(HeaderFiles, AllCountThatANameMayMean)
{
    write("include/a.h", "1");
    write("other/a.h", "2");
    const std::string more = " -I " + (m_dir.path() / "other").string();
    EXPECT_EQ(headers("#include <a.h>", more).found.size(), 2U);
    write("other/a.h", "3");
    EXPECT_EQ(headers("#include <a.h>", more).found.size(), 2U);
    EXPECT_NE(headers("#include <a.h>", more), headers("#include <a.h>"));
}

TEST_F(HeaderFiles, OfOneNameCountInTheOrderOfTheSearch)
{
    write("a/x.h", "1");
    write("b/x.h", "2");
    const std::string a = (m_dir.path() / "a").string(), b = (m_dir.path() / "b").string();
    const auto with = [](const std::string& options) { return headers_of("#include <x.h>", parse_options(options)); };
    const Headers first = with("-I " + a + " -I " + b), second = with("-I " + b + " -I " + a);
    EXPECT_EQ(first.found, second.found) << "the same set";
    EXPECT_NE(first.search, second.search);
    EXPECT_NE(with("-isystem " + a + " -I " + b).search, first.search) << "b comes first there";
    EXPECT_NE(with("-iquote " + a + " -I " + b).search, first.search) << "a is not searched for <x.h>";
    EXPECT_NE(with("-I " + a + " -I " + b + " -isystem " + a).search,
              with("-I " + a + " -I " + b + " -isystem " + b).search)
        << "compilers drop an -I that is a system folder too";
    write("a/x.h", "2");
    write("b/x.h", "1");
    EXPECT_EQ(with("-I " + a + " -I " + b).search, second.search) << "contents that changed places";
}

TEST_F(HeaderFiles, BesideTwoFilesThatChangedPlacesAreAnother)
{
    write("include/a/first.h", "#include \"value.h\"");
    write("include/b/second.h", "#include \"value.h\"\n");
    const std::string source = "#include \"a/first.h\"\n#include \"b/second.h\"";
    write("include/a/value.h", "1");
    write("include/b/value.h", "2");
    const Headers before = headers(source);
    write("include/a/value.h", "2");
    write("include/b/value.h", "1");
    EXPECT_EQ(headers(source).found, before.found);
    EXPECT_NE(headers(source).search, before.search);
}

TEST_F(HeaderFiles, CirclesEndAndWhatIsNoFileIsNone)
{
    write("include/a.h", "#include \"b.h\"\n#include \"a.h\"");
    write("include/b.h", "#include \"a.h\"\n#include \"folder\"\n#include \"\\0\"");
    fs::create_directories(m_dir.path() / "include/folder");
    EXPECT_EQ(headers("#include \"a.h\"").found.size(), 2U);
    EXPECT_EQ(headers("#include \"a.h\"").why_unknown, "");
}

TEST_F(HeaderFiles, ThatAreForcedCountByTheirContentsToo)
{
    write("forced.h", "#include \"include/a.h\"");
    write("include/a.h", "1");
    const Headers found = headers("", " -include " + (m_dir.path() / "forced.h").string());
    ASSERT_EQ(found.found.size(), 2U);
    EXPECT_EQ(found.found[0].name, "forced.h");
    write("moved/forced.h", "#include \"include/a.h\"");
    write("moved/include/a.h", "1");
    EXPECT_EQ(headers_of("", parse_options("-I " + (m_dir.path() / "moved/include").string() + " -include " +
                                           (m_dir.path() / "moved/forced.h").string())),
              found)
        << "its path is none of it";
}

TEST_F(HeaderFiles, OfAComputedNameAreUnknownAlsoWithinHeaders)
{
    write("include/a.h", "#include CONFIG\n");
    EXPECT_THAT(headers("#include \"a.h\"").why_unknown, HasSubstr("'#include CONFIG'"));
}

} // namespace
} // namespace warmgraph::precompile::headers_test
