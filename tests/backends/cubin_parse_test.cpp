// Tests the facts that Cubin::parse finds in the output of nvcc.
#include <algorithm>

#include "cubin/cubin.hpp"
#include "cubin_files.hpp"
#include "expect_error.hpp"

namespace warmgraph::backends::cuda::test::cubin_parse_test {
namespace {

using warmgraph::test::cubin_file;
using warmgraph::test::section_number;

Cubin parsed(const std::string& name)
{
    auto cubin = Cubin::parse(cubin_file(name));
    EXPECT_TRUE(succeeded(cubin));
    return cubin ? std::move(*cubin) : Cubin{};
}

const CubinVariable& variable(const Cubin& cubin, const std::string& name)
{
    static const CubinVariable none;
    const auto found = std::ranges::find(cubin.variables(), name, &CubinVariable::name);
    EXPECT_NE(found, cubin.variables().end()) << name;
    return found != cubin.variables().end() ? *found : none;
}

template <class T>
T value(const CubinVariable& variable, std::size_t index)
{
    return load<T>(variable.initial, index * sizeof(T));
}

TEST(Cubin, ListsItsKernels)
{
    for (const char* name : {"several.cubin", "linked.cubin"}) {
        const Cubin cubin = parsed(name);
        EXPECT_THAT(cubin.kernels(), UnorderedElementsAre("scale", "shift", "sum", "through_pointer", "jumps",
                                                          "_Z7mangledIfEvPT_", "_Z7mangledIdEvPT_"));
        EXPECT_EQ(kernels_of(cubin_file(name)), cubin.kernels());
    }
}

TEST(Cubin, CallsFunctionsByTheirAddressesOnlyWhereItWasLinked)
{
    for (const char* name : {"linked.cubin", "functions_linked.cubin"})
        EXPECT_TRUE(code_traits(cubin_file(name)).calls_by_address);
    for (const char* name : {"several.cubin", "functions.cubin"})
        EXPECT_FALSE(code_traits(cubin_file(name)).calls_by_address) << name << ": by the numbers of rows";
    EXPECT_FALSE(code_traits(cubin_file("lines.cubin")).calls_by_address);
    EXPECT_TRUE(code_traits(as_bytes(".version 9.0")).calls_by_address) << "unknown";
    Bytes damaged = cubin_file("linked.cubin");
    const auto file = take(elf::File::parse(damaged));
    const auto section = section_number(file, ".nv.callgraph");
    ASSERT_TRUE(section.has_value());
    damaged[static_cast<std::size_t>(file.sections()[*section].offset)] = std::byte{1}; // damages the first row
    EXPECT_TRUE(code_traits(damaged).calls_by_address) << "unknown";
}

TEST(Cubin, KeepsStateWhereItHasVariablesInGlobalMemory)
{
    for (const char* name : {"several.cubin", "linked.cubin", "functions.cubin"})
        EXPECT_TRUE(code_traits(cubin_file(name)).keeps_state) << name;
    EXPECT_FALSE(code_traits(cubin_file("plain.cubin")).keeps_state);
    EXPECT_TRUE(code_traits(as_bytes(".version 9.0")).keeps_state) << "unknown";
}

TEST(Cubin, KnowsItsArchitecture)
{
    EXPECT_EQ(parsed("several.cubin").sm(), 90U);
    EXPECT_EQ(parsed("mercury.cubin").sm(), 100U);
}

TEST(Cubin, OfAnOlderFormatKnowsItsArchitectureToo)
{
    Bytes bytes = cubin_file("several.cubin");
    bytes[8] = std::byte{7}; // the byte EI_ABIVERSION, as CUDA 12 writes it
    bytes[48] = std::byte{86};
    const auto cubin = take(Cubin::parse(bytes));
    EXPECT_EQ(cubin.sm(), 86U);
}

TEST(Cubin, GivesTheInitialValuesOfItsVariables)
{
    for (const char* name : {"several.cubin", "linked.cubin"}) {
        const Cubin cubin = parsed(name);
        const CubinVariable& set = variable(cubin, "d_set");
        EXPECT_EQ(set.kind, VariableKind::device);
        ASSERT_EQ(set.initial.size(), 12U);
        EXPECT_EQ(value<int>(set, 0), 1);
        EXPECT_EQ(value<int>(set, 2), 3);
        const CubinVariable& constant = variable(cubin, "c_set");
        EXPECT_EQ(constant.kind, VariableKind::constant);
        ASSERT_EQ(constant.initial.size(), 8U);
        EXPECT_EQ(value<int>(constant, 1), 8);
    }
}

TEST(Cubin, GivesZerosForVariablesWithoutInitialValue)
{
    const Cubin cubin = parsed("several.cubin");
    EXPECT_EQ(variable(cubin, "d_zero").size, 256U);
    EXPECT_EQ(variable(cubin, "d_zero").initial, Bytes(256));
    EXPECT_EQ(variable(cubin, "c_zero").kind, VariableKind::constant);
    EXPECT_EQ(variable(cubin, "c_zero").initial, Bytes(20));
}

TEST(Cubin, TellsLocalNamesFromVisibleOnes)
{
    const Cubin linked = parsed("linked.cubin");
    EXPECT_EQ(variable(linked, "d_set").binding, VariableBinding::visible);
    const auto is_local = [](const CubinVariable& v) {
        return v.name.ends_with("d_local") && v.binding == VariableBinding::local;
    };
    EXPECT_TRUE(std::ranges::any_of(linked.variables(), is_local));
    EXPECT_EQ(variable(parsed("several.cubin"), "d_set").binding, VariableBinding::local)
        << "whole-program compilation";
}

TEST(Cubin, SaysWhereTheLoaderPutsAddresses)
{
    const Cubin lines = parsed("lines.cubin");
    EXPECT_THAT(variable(lines, "d_pointer").relocated, ElementsAre(0U));
    EXPECT_THAT(variable(lines, "d_value").relocated, IsEmpty());
    EXPECT_THAT(variable(parsed("linked.cubin"), "d_function").relocated, ElementsAre(0U));
}

TEST(Cubin, MarksManagedVariables)
{
    const Cubin lines = parsed("lines.cubin");
    EXPECT_EQ(variable(lines, "d_managed").kind, VariableKind::managed);
    EXPECT_EQ(variable(lines, "d_value").kind, VariableKind::device);
}

TEST(Cubin, IsNothingElse)
{
    EXPECT_TRUE(failed_with(Cubin::parse({}), ErrorCode::unsupported, "0 bytes"));
    EXPECT_TRUE(failed_with(Cubin::parse(as_bytes(std::string(200, '/'))), ErrorCode::unsupported, "not a 64-bit ELF"));
    Bytes other = cubin_file("several.cubin");
    other[18] = std::byte{62}; // x86-64
    EXPECT_TRUE(failed_with(Cubin::parse(other), ErrorCode::unsupported, "machine 62"));
}

TEST(Cubin, WithAVariableOutsideItsSectionIsCorrupt)
{
    Bytes bytes = cubin_file("several.cubin");
    const auto file = take(elf::File::parse(bytes));
    const auto number = warmgraph::test::symbol_number(file, "d_set");
    ASSERT_TRUE(number.has_value());
    const std::uint64_t at = file.sections()[file.symbol_section()].offset + 24ULL * *number + 8; // the field st_value
    bytes[at + 3] = std::byte{1};
    EXPECT_TRUE(failed_with(Cubin::parse(bytes), ErrorCode::corrupt, "variable 'd_set'"));
}

} // namespace
} // namespace warmgraph::backends::cuda::test::cubin_parse_test
