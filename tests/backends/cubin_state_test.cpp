// Tests which variables in global memory count as state.
#include <algorithm>
#include <utility>

#include "cubin/cubin.hpp"
#include "cubin/state.hpp"
#include "cubin_files.hpp"
#include "expect_error.hpp"

namespace warmgraph::backends::cuda::test::cubin_state_test {
namespace {

using warmgraph::test::cubin_file;
using warmgraph::test::section_number;
using warmgraph::test::symbol_number;

/// The cubin in which the name `from` is replaced by `to`. Both names have the same length.
Bytes renamed(Bytes cubin, std::string_view from, std::string_view to)
{
    const auto at = as_text(cubin).find(from);
    EXPECT_NE(at, std::string_view::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    std::ranges::copy(as_bytes(to), cubin.begin() + static_cast<std::ptrdiff_t>(at));
    return cubin;
}

bool keeps_state_of(const Bytes& cubin) { return code_traits(cubin).keeps_state; }

TEST(CubinState, TextsOfTheCompilersAreNoState)
{
    const Bytes texts = cubin_file("texts.cubin");
    EXPECT_FALSE(code_traits(texts).keeps_state);
    const auto file = take(elf::File::parse(texts));
    const auto section = section_number(file, ".nv.global.init");
    ASSERT_TRUE(section.has_value());
    const auto start = static_cast<std::size_t>(file.sections()[*section].offset);
    const auto size = static_cast<std::size_t>(file.sections()[*section].size);
    {
        Bytes other = texts; // a byte that is not part of a text: the variable may be a number
        for (std::size_t i = 0; i < size; ++i) {
            const auto before = std::exchange(other[start + i], std::byte{1});
            EXPECT_TRUE(code_traits(other).keeps_state) << i;
            other[start + i] = before;
        }
    }
    const auto with = [&](std::string_view from, std::string_view to) {
        Bytes other = texts;
        const auto names = as_text(texts).find(std::string{'\0'} + std::string(from) + '\0');
        EXPECT_NE(names, std::string_view::npos) << from;
        std::ranges::copy(as_bytes(to), other.begin() + static_cast<std::ptrdiff_t>(names) + 1);
        return code_traits(other).keeps_state;
    };
    EXPECT_FALSE(with("$str$1", "$str$9"));
    EXPECT_TRUE(with("$str$1", "$strin")) << "a variable of the program's, as far as one can tell";
    EXPECT_TRUE(with("__unnamed_1", "__unnamed_x"));
    Bytes longer = texts; // without the symbols that cover the end of the variable
    const auto table = static_cast<std::size_t>(file.sections()[file.symbol_section()].offset);
    for (std::size_t i = 0; i < file.symbols().size(); ++i)
        if (file.section_of(file.symbols()[i]) == *section && file.symbols()[i].size > 15)
            longer[table + i * 24 + 16] = std::byte{0};
    EXPECT_TRUE(code_traits(longer).keeps_state) << "bytes that no symbol covers";
}

TEST(CubinState, TextsOfTritonAreNoState)
{
    const Bytes cubin = cubin_file("triton_texts.cubin");
    EXPECT_FALSE(keeps_state_of(cubin));
    EXPECT_TRUE(keeps_state_of(renamed(cubin, "_$_str", "_$_sum"))) << "a variable of the program's";
    EXPECT_TRUE(keeps_state_of(renamed(cubin, "_$_str", "_$_st9")));
    EXPECT_TRUE(keeps_state_of(renamed(cubin, "assertFile_2", "assertFile_x")));
    EXPECT_TRUE(keeps_state_of(renamed(cubin, "assertFile_2", "assertFile_7"))) << "two assertions, neither whole";
    EXPECT_TRUE(keeps_state_of(renamed(cubin, "assertFile_2", "assertFilm_2")));
    const auto file = take(elf::File::parse(cubin));
    const auto number = section_number(file, ".nv.global.init");
    ASSERT_TRUE(number.has_value());
    const elf::Section& section = file.sections()[*number];
    for (std::uint64_t i = 0; i < section.size; ++i) {
        Bytes other = cubin;
        other[static_cast<std::size_t>(section.offset + i)] = std::byte{1};
        EXPECT_TRUE(keeps_state_of(other)) << "no text at " << i;
    }
    const auto symbols = static_cast<std::size_t>(file.sections()[file.symbol_section()].offset);
    for (std::size_t i = 0; i < file.symbols().size(); ++i) {
        const elf::Symbol& symbol = file.symbols()[i];
        if (symbol.type() != elf::k_object || file.section_of(symbol) != *number) continue;
        Bytes visible = cubin;
        visible[symbols + i * sizeof(elf::Symbol) + 4] |= std::byte{0x10};
        EXPECT_TRUE(keeps_state_of(visible)) << file.name(symbol) << ": others may write it by its name";
    }
}

TEST(CubinState, EmptyObjectsOfTheHeadersAreNoState)
{
    for (const char* name : {
             "_ZN4cuda3std3__45__cpo5beginE",
             "_ZN38_INTERNAL_5b8df9d9_11_standard_cu_sine4cuda3std3__45__cpo5beginE",
             "_ZN38_INTERNAL_5b8df9d9_11_standard_cu_sine4cuda3std6ranges3__45__cpo8distanceE",
             "_ZN38_INTERNAL_5b8df9d9_11_standard_cu_sine4cuda3std3__419piecewise_constructE",
             "_ZN33_INTERNAL_354d9723_4_t_cu__Z1kPfi4cuda3std3__435_GLOBAL__N__354d9723_4_t_cu__Z1kPfi6ignoreE",
             "_ZN33_INTERNAL_354d9723_4_t_cu__Z1kPfi6thrust23THRUST_300001_SM_900_NS12placeholders2_1E",
             "_ZN33_INTERNAL_354d9723_4_t_cu__Z1kPfi6thrust23THRUST_300001_SM_900_NS12placeholders3_10E",
             "_ZN33_INTERNAL_354d9723_4_t_cu__Z1kPfi6thrust23THRUST_300001_SM_900_NS8cuda_cub10par_nosyncE",
             "_ZN6thrust16THRUST_200302_NS6system6detail10sequential3seqE",
             "_ZN6thrust3seqE",
             "_ZN4cute1_E",
             "__nv_static_24__354d9723_4_t_cu__Z1kPfi__ZN33_INTERNAL_354d9723_4_t_cu__Z1kPfi4cuda3std3__48in_placeE",
         })
        EXPECT_TRUE(is_empty_object(name, 1)) << name;
}

TEST(CubinState, WhatOnlyLooksLikeAnEmptyObjectIsState)
{
    EXPECT_FALSE(is_empty_object("_ZN4cuda3std3__45__cpo5beginE", 4)) << "something with members";
    for (const char* name : {
             "_ZN4cuda3std7counterE",         // not a name in cuda::std
             "_ZN4cuda3seqE",                 // a name in another namespace
             "_ZN2my4cuda3std3__48in_placeE", // a name in a program's namespace
             "_ZN38_INTERNAL_5b8df9d9_11_standard_cu_sine2my3seqE",
             "_ZN6thrust3seq5countE", // a name inside an object
             "_ZN6thrust12placeholders2_15countE",
             "_ZN4cuda3std3__45__cpo5begin5countE",
             "_ZN6thrust23THRUST_300001_SM_900_NSE", // the name of a namespace alone
             "_ZN4cuda3std3__49is_same_vIiiEE",      // the name of a template
             "_ZN4cuda3std3__48in_placeEv",          // the name of a function
             "_ZZN4cuda3std3__48in_placeEvE5count",  // a name inside a function
             "_ZN6thrust3sequE",                     // with wrong lengths
             "_ZN6thrust99seqE",
             "_ZN6thrust03seqE",
             "_ZN6thrust99999999999999999999seqE",
             "_ZN",
             "_ZNE",
             "_ZN6thrust",
             "_Z3seq",
             "seq",
             "thrust::seq",
             "",
             "__nv_static_24_",
             "__nv_static_9999_x_ZN6thrust3seqE",
             "__nv_static_x_ZN6thrust3seqE",
         })
        EXPECT_FALSE(is_empty_object(name, 1)) << name;
}

TEST(CubinState, TablesOfTheCompilerAreNoStateWhileTheyHoldWhatTheyShould)
{
    const Bytes cubin = cubin_file("standard.cubin");
    const auto file = take(elf::File::parse(cubin));
    const auto table = symbol_number(file, "__cudart_i2opi_f");
    ASSERT_TRUE(table.has_value());
    const elf::Symbol& symbol = file.symbols()[*table];
    const ByteView contents = file.contents(file.sections()[symbol.section]).subspan(symbol.value, symbol.size);
    EXPECT_TRUE(is_known_table("__cudart_i2opi_f", contents));
    EXPECT_TRUE(is_known_table("__nv_static_3__my___cudart_i2opi_f", contents)) << "linked";
    EXPECT_FALSE(is_known_table("__cudart_i2opi_d", contents)) << "another one's contents";
    EXPECT_FALSE(is_known_table("my_table", contents));
    EXPECT_FALSE(is_known_table("__cudart_i2opi_f", contents.first(contents.size() - 4)));
    EXPECT_FALSE(is_known_table("__cudart_i2opi_f", {})) << "without initial contents";
    Bytes other(contents.begin(), contents.end());
    other.back() ^= std::byte{1};
    EXPECT_FALSE(is_known_table("__cudart_i2opi_f", other));
    EXPECT_FALSE(is_known_table("precalc_xorwow_matrix", Bytes(102'400)));
}

TEST(CubinState, ModulesWithWhatHeadersBringAlongAreShared)
{
    const Bytes cubin = cubin_file("standard.cubin");
    EXPECT_FALSE(keeps_state_of(cubin));
    EXPECT_TRUE(keeps_state_of(renamed(cubin, "__cpo5beginE", "__cpu5beginE")));
    EXPECT_TRUE(keeps_state_of(renamed(cubin, "__cudart_i2opi_f", "__cudart_i2opi_x")));
    const auto file = take(elf::File::parse(cubin));
    const auto symbols = static_cast<std::size_t>(file.sections()[file.symbol_section()].offset);
    for (const char* section_name : {".nv.global", ".nv.global.init"}) {
        const auto section = section_number(file, section_name);
        ASSERT_TRUE(section.has_value());
        for (std::size_t i = 0; i < file.symbols().size(); ++i) {
            const elf::Symbol& symbol = file.symbols()[i];
            if (symbol.type() != elf::k_object || file.section_of(symbol) != *section) continue;
            Bytes managed = cubin;
            managed[symbols + i * sizeof(elf::Symbol) + 5] |= std::byte{0x04};
            EXPECT_TRUE(keeps_state_of(managed)) << file.name(symbol) << ": the host writes it";
        }
    }
    const auto init = file.sections()[*section_number(file, ".nv.global.init")];
    Bytes other = cubin;
    other[static_cast<std::size_t>(init.offset)] ^= std::byte{1};
    EXPECT_TRUE(keeps_state_of(other)) << "a table with other contents";
}

} // namespace
} // namespace warmgraph::backends::cuda::test::cubin_state_test
