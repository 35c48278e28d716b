// Tests kernel names in readable form: real names, and hostile names from a file.
#include <string>
#include <vector>

#include "matchers.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::test::kernel_name_test {
namespace {

using testing::Le;

constexpr std::size_t k_longest = 120;

/// The mangled name "1pI1pI...1AS1_ES2_E...": each type in it is a pair of the type before, so the readable name has
/// 2^depth parts.
std::string doubling(std::size_t depth)
{
    const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string name = "_Z1f", ends;
    for (std::size_t i = 0; i < depth; ++i) {
        const std::size_t type = depth + i; // numbered after the names of the templates
        name += "1pI";
        const std::string number = type == 0    ? ""
                                   : type <= 36 ? std::string{digits[type - 1]}
                                                : std::string{digits[(type - 1) / 36]} + digits[(type - 1) % 36];
        ends += "S" + number + "_E";
    }
    return name + "1A" + ends;
}

struct Named {
    std::string mangled, readable;
};

class KernelNames : public testing::TestWithParam<Named> {};

TEST_P(KernelNames, AreRead) { EXPECT_EQ(readable_kernel_name(GetParam().mangled), GetParam().readable); }

INSTANTIATE_TEST_SUITE_P(
    Real, KernelNames,
    testing::Values(
        Named{"_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_13BinaryFunctorIfffNS0_15"
              "binary_internal10MulFunctorIfEEEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_",
              "at::native::elementwise_kernel<128, 2, ...>"},
        Named{"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
              "at::native::vectorized_elementwise_kernel<4, ...>"},
        Named{
            "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functorIfffEclERNS_"
            "14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_",
            "at::native::reduce_kernel<512, 1, ...>"},
        Named{"_ZN2at6native39_GLOBAL__N__8a2f06b5_10_SoftMax_cu_9e3a20softmax_warp_forwardIfffLi8ELb0ELb0EEEvPT0_PKT_"
              "iii",
              "at::native::softmax_warp_forward<float, float, ...>"},
        Named{
            "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4ELb0ELb0EN7cutlass10bfloat16_tE"
            "EELb0ELb1ELb0ELb0ELb1ELb1ELb0EEEvNS_16Flash_fwd_paramsE",
            "flash::flash_fwd_kernel<...>"},
        Named{"_Z8bf16_addILj256ELb1EEvPfS0_", "bf16_add<256u, true>"}, Named{"_ZN12_GLOBAL__N_15scaleEPff", "scale"},
        Named{"_ZN3FooIiE6kernelILl3EEEvv", "Foo<int>::kernel<3l>"},
        Named{"_ZN3cub13kernel_of_twoIN3c104HalfEiEEvv", "cub::kernel_of_two<c10::Half, int>"},
        Named{"_Z3addPKfS0_Pfi", "add"}));

INSTANTIATE_TEST_SUITE_P(Plain, KernelNames,
                         testing::Values(Named{"add", "add"}, Named{"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
                                         Named{"i", "i"}, Named{"void", "void"}, Named{"", ""}, Named{"_Z", "_Z"},
                                         Named{"_ZN", "_ZN"}, Named{"_ZNE", "_ZNE"}, Named{"_Z99x", "_Z99x"},
                                         Named{"a\x1b[2J", "a\\x1b[2J"}, Named{"<(", "<("}, Named{">)", ">)"}));

/// Names that the demangler cannot read, because they are too long.
INSTANTIATE_TEST_SUITE_P(
    Long, KernelNames,
    testing::Values(
        Named{"_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalI" + std::string(2000, 'x') + "EEEvNT_6ParamsE",
              "cutlass::device_kernel<...>"},
        Named{"_ZN7cutlass7Kernel2ILi128ELin2ELb1E" + std::string(2000, 'x'), "cutlass::Kernel2<128, -2, ...>"},
        Named{"_ZN12_GLOBAL__N_16kernelIjxE" + std::string(2000, 'x'), "kernel<unsigned int, long long>"},
        Named{"_ZNSt6detail3runILm8EEE" + std::string(2000, 'x'), "std::detail::run<8ul>"},
        Named{"_ZN3foo3runB5cxx11Ef" + std::string(2000, 'x'), "foo::run"},
        Named{"_Z3runILh4EE" + std::string(2000, 'x'), "run<...>"}, Named{"_Z3run" + std::string(2000, 'f'), "run"}));

TEST(KernelName, IsCutInTheMiddle)
{
    for (const std::string& name : {std::string(100'000, 'a') + "_end", "_Z4200" + std::string(4200, 'a') + "v"}) {
        const std::string readable = readable_kernel_name(name);
        EXPECT_THAT(readable, AllOf(SizeIs(Le(k_longest)), SizeIs(testing::Ge(k_longest - 1)), HasSubstr("aa...aa")));
    }
    EXPECT_THAT(readable_kernel_name("begin" + std::string(500, 'a') + "end"),
                AllOf(StartsWith("begin"), EndsWith("end")));
    EXPECT_EQ(readable_kernel_name(std::string(k_longest, 'a')), std::string(k_longest, 'a'));
}

TEST(KernelName, IsNeverCutInsideACharacter)
{
    for (std::size_t shift = 0; shift < 4; ++shift) {
        std::string name(shift, 'a');
        for (int i = 0; i < 100; ++i) name += "\xc3\xa9\xe2\x82\xac"; // é€
        const std::string readable = readable_kernel_name(name);
        EXPECT_THAT(readable, SizeIs(Le(k_longest)));
        for (const std::size_t at : {readable.find("...") + 3, readable.size()})
            EXPECT_TRUE(at == readable.size() || (static_cast<unsigned char>(readable[at]) & 0xC0U) != 0x80) << shift;
        const char last = readable[readable.find("...") - 1];
        EXPECT_TRUE(last == 'a' || last == '\xa9' || last == '\xac') << shift;
    }
}

/// For the longer of these names, c++filt needs gigabytes of memory.
TEST(KernelName, OfAFewBytesThatMeanGigabytesIsShortAndQuick)
{
    EXPECT_EQ(readable_kernel_name(doubling(3)), "f");
    EXPECT_EQ(readable_kernel_name(doubling(60)), "f");
    std::string packs = "_Z1fIJ";
    packs += std::string(300, 'i') + "EEv";
    for (int i = 0; i < 60; ++i) packs += "Dp1pIT_";
    EXPECT_THAT(readable_kernel_name(packs), SizeIs(Le(k_longest)));
}

TEST(KernelName, OfGarbageIsShortAndPrintable)
{
    std::vector<std::string> names{std::string(100'000, '<'),
                                   std::string(100'000, '\0'),
                                   "_Z" + std::string(100'000, 'N'),
                                   "_ZN" + std::string(100'000, '1'),
                                   "_Z" + std::string(60'000, 'P') + "i",
                                   "_Z1f" + std::string(1000, 'P') + "i",
                                   "_ZN1a" + std::string("\0b", 2) + "E",
                                   "_Z1f" + std::string(90'000, 'S'),
                                   std::string(100'000, '\xff')};
    unsigned random = 1;
    for (int i = 0; i < 20'000; ++i) {
        std::string name = "_Z";
        for (int length = 0; length < 40; ++length) {
            random = random * 1'664'525U + 1'013'904'223U;
            name += std::string_view{"NISTLE_0123456ifvPKRUlDpJXclZB<>(),a"}[(random >> 16U) % 36];
        }
        names.push_back(name);
    }
    for (const std::string& name : names) {
        const std::string readable = readable_kernel_name(name);
        EXPECT_FALSE(readable.empty());
        EXPECT_LE(readable.size(), k_longest);
        for (const char c : readable) EXPECT_TRUE(c >= ' ' && c != '\x7f') << name;
    }
}

} // namespace
} // namespace warmgraph::test::kernel_name_test
