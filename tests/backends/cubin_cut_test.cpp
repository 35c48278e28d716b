// A cut image keeps the requested kernels unchanged, with the same numbers of sections and symbols. It is smaller than
// the whole image.
#include <algorithm>
#include <set>

#include "cubin/call_rows.hpp"
#include "cubin/cubin.hpp"
#include "cubin/cut.hpp"
#include "cubin_files.hpp"
#include "expect_error.hpp"

namespace warmgraph::backends::cuda::test::cubin_cut_test {
namespace {

using warmgraph::test::cubin_file;
using warmgraph::test::section_names;
using warmgraph::test::section_number;
using warmgraph::test::symbol_number;
using namespace std::string_literals;

const std::vector<std::string> k_kernels = {"scale", "shift", "sum", "through_pointer", "jumps", "_Z7mangledIfEvPT_"};

Bytes cut(const Bytes& image, const std::vector<std::string>& kernels)
{
    auto bytes = cut_cubin(image, kernels);
    EXPECT_TRUE(succeeded(bytes));
    return bytes ? std::move(*bytes) : Bytes{};
}

Bytes contents_of(const elf::File& file, std::string_view section)
{
    const auto number = section_number(file, section);
    EXPECT_TRUE(number.has_value()) << section;
    if (!number) return {};
    const ByteView bytes = file.contents(file.sections()[*number]);
    return {bytes.begin(), bytes.end()};
}

// Expects, for any cut, that each section that is left has the number, name, place in memory and bytes that it had.
void expect_same_where_left(const elf::File& whole, const elf::File& part)
{
    ASSERT_EQ(part.sections().size(), whole.sections().size());
    ASSERT_EQ(part.symbols().size(), whole.symbols().size());
    // Sections with rows about kernels. If a kernel is removed, its rows are removed, too.
    const std::set<std::string_view> rewritten = {".nv.info", ".nv.callgraph", ".nv.prototype",    ".shstrtab",
                                                  ".strtab",  ".symtab",       ".rela.debug_frame"};
    for (std::size_t i = 0; i < whole.sections().size(); ++i) {
        const elf::Section &before = whole.sections()[i], &after = part.sections()[i];
        if (after.type == elf::k_null) {
            EXPECT_EQ(after.size + after.flags + after.link + after.info + after.offset, 0U) << i;
            continue;
        }
        const std::string_view name = whole.name(before);
        EXPECT_EQ(part.name(after), name);
        EXPECT_EQ(std::tie(after.type, after.flags, after.link, after.info, after.alignment, after.entry_size),
                  std::tie(before.type, before.flags, before.link, before.info, before.alignment, before.entry_size))
            << name;
        EXPECT_EQ(after.offset % std::max<std::uint64_t>(after.alignment, 1), 0U) << name;
        if (rewritten.contains(name)) continue;
        EXPECT_EQ(after.size, before.size) << name;
        EXPECT_TRUE(std::ranges::equal(part.contents(after), whole.contents(before))) << name;
    }
    for (std::size_t i = 0; i < whole.symbols().size(); ++i) {
        const elf::Symbol &before = whole.symbols()[i], &after = part.symbols()[i];
        if (part.name(after).empty() && after.section == 0) continue;
        EXPECT_EQ(part.name(after), whole.name(before));
        EXPECT_EQ(std::tie(after.info, after.other, after.section, after.value, after.size),
                  std::tie(before.info, before.other, before.section, before.value, before.size));
    }
}

// Expects that no row that is left names a removed section or symbol.
void expect_no_loose_ends(const elf::File& part)
{
    const auto is_gone = [&](std::uint32_t symbol) {
        return symbol != 0 && (symbol >= part.symbols().size() ||
                               (part.symbols()[symbol].section == 0 && part.name(part.symbols()[symbol]).empty()));
    };
    for (const elf::Symbol& symbol : part.symbols())
        EXPECT_TRUE(symbol.section == 0 || part.sections()[part.section_of(symbol)].type != elf::k_null)
            << part.name(symbol);
    for (const elf::Section& section : part.sections()) {
        for (const elf::Relocation& row : elf::relocations(part, section))
            EXPECT_FALSE(is_gone(row.symbol)) << part.name(section) << " names symbol " << row.symbol;
        const bool is_linked = (section.flags & elf::k_info_link) != 0;
        EXPECT_FALSE(is_linked && part.sections()[section.info].type == elf::k_null) << part.name(section);
    }
    const Bytes info = contents_of(part, ".nv.info");
    const auto rows = take(read_info(info));
    for (const InfoRow& row : rows) EXPECT_FALSE(is_about_symbol(row) && is_gone(load<std::uint32_t>(row.payload)));
    const auto calls = take(read_calls(contents_of(part, ".nv.callgraph")));
    for (const CallRow& row : calls) {
        EXPECT_FALSE(row.kind != CallKind::mark && is_gone(row.first));
        EXPECT_FALSE(row.kind == CallKind::needs && is_gone(row.second));
    }
}

// Expects that each segment covers exactly its sections in the file, and at least the memory that they need.
void expect_whole_segments(const elf::File& part)
{
    for (const elf::Segment& segment : part.segments()) {
        EXPECT_LE(segment.offset + segment.file_size, part.bytes().size());
        EXPECT_GE(segment.memory_size, segment.file_size);
        EXPECT_EQ(segment.offset % 8, 0U);
        for (const elf::Section& section : part.sections()) {
            if (section.type == elf::k_null || section.type == elf::k_nobits || section.size == 0) continue;
            const bool apart =
                section.offset >= segment.offset + segment.file_size || section.offset + section.size <= segment.offset;
            const bool inside =
                section.offset >= segment.offset && section.offset + section.size <= segment.offset + segment.file_size;
            EXPECT_TRUE(apart || inside) << part.name(section);
        }
    }
}

TEST(CutCubin, KeepsOnlyTheKernelThatIsAskedFor)
{
    for (const char* name : {"several.cubin", "linked.cubin"}) {
        const Bytes whole = cubin_file(name);
        const auto before = take(elf::File::parse(whole));
        for (const std::string& kernel : k_kernels) {
            SCOPED_TRACE(std::string(name) + ", " + kernel);
            const Bytes bytes = cut(whole, {kernel});
            const auto part = take(elf::File::parse(bytes));
            EXPECT_LT(bytes.size(), whole.size() * 3 / 4);
            EXPECT_THAT(*kernels_of(bytes), ElementsAre(kernel));
            EXPECT_EQ(contents_of(part, ".text." + kernel), contents_of(before, ".text." + kernel));
            expect_same_where_left(before, part);
            expect_no_loose_ends(part);
            expect_whole_segments(part);
        }
    }
}

TEST(CutCubin, KeepsEveryVariable)
{
    const Bytes whole = cubin_file("several.cubin");
    const auto before = Cubin::parse(whole), after = Cubin::parse(cut(whole, {"sum"}));
    ASSERT_TRUE(succeeded(after));
    ASSERT_EQ(after->variables().size(), before->variables().size());
    for (std::size_t i = 0; i < before->variables().size(); ++i) {
        EXPECT_EQ(after->variables()[i].name, before->variables()[i].name);
        EXPECT_EQ(after->variables()[i].initial, before->variables()[i].initial);
    }
}

TEST(CutCubin, KeepsTheFunctionsThatAKernelCalls)
{
    const Bytes whole = cubin_file("linked.cubin");
    const auto sections = [&](const Bytes& bytes) { return section_names(*elf::File::parse(bytes)); };
    const Bytes scale = cut(whole, {"scale"}), shift = cut(whole, {"shift"}), jumps = cut(whole, {"jumps"});
    EXPECT_THAT(sections(scale), Contains(".text._Z13shared_helperf"));
    EXPECT_THAT(sections(scale), Contains(".nv.info._Z13shared_helperf"));
    EXPECT_THAT(sections(scale), Not(Contains(".text._Z10own_helperf")));
    EXPECT_THAT(sections(shift), Contains(".text._Z13shared_helperf"));
    EXPECT_THAT(sections(shift), Contains(".text._Z10own_helperf"));
    EXPECT_THAT(sections(jumps), Contains(".text.__cuda_sm20_sqrt_rn_f32_slowpath"));
    EXPECT_THAT(sections(jumps), Contains(".nv.constant2.jumps"));
    EXPECT_THAT(sections(jumps), Not(Contains(".text._Z13shared_helperf")));
}

TEST(CutCubin, KeepsAFunctionWhoseAddressIsInAVariable)
{
    const Bytes bytes = cut(cubin_file("linked.cubin"), {"sum"});
    EXPECT_THAT(section_names(*elf::File::parse(bytes)), Contains(".text._Z10pointed_tof"));
}

TEST(CutCubin, KeepsTheFunctionsWhoseAddressesAKernelTakes)
{
    for (const char* kernel : {"pointers", "by_row"}) {
        const Bytes image = cubin_file("functions_linked.cubin");
        const Bytes bytes = cut(image, {kernel});
        const auto part = take(elf::File::parse(bytes));
        EXPECT_THAT(section_names(part),
                    testing::IsSupersetOf({".text." + std::string(kernel), ".text._Z5twicef"s, ".text._Z7add_onef"s}));
        EXPECT_THAT(section_names(part), Not(Contains(".text.by_pointer")));
        expect_same_where_left(*elf::File::parse(image), part);
        expect_no_loose_ends(part);
    }
}

TEST(CutCubin, DropsLineTablesAndKeepsFrames)
{
    const Bytes bytes = cut(cubin_file("lines.cubin"), {"first"});
    const auto names = section_names(*elf::File::parse(bytes));
    EXPECT_THAT(names, Contains(".debug_frame"));
    for (const char* gone : {".debug_line", ".nv_debug_ptx_txt", ".rela.debug_line", ".text.second"})
        EXPECT_THAT(names, Not(Contains(gone)));
}

TEST(CutCubin, OfAllKernelsLeavesNothingOut)
{
    const Bytes whole = cubin_file("linked.cubin");
    const Bytes bytes = cut(whole, *kernels_of(whole));
    const auto before = elf::File::parse(whole), after = elf::File::parse(bytes);
    ASSERT_TRUE(succeeded(after));
    EXPECT_EQ(section_names(*after), section_names(*before));
    expect_same_where_left(*before, *after);
    for (const char* rows : {".nv.info", ".nv.callgraph", ".nv.prototype", ".rela.debug_frame"})
        EXPECT_EQ(contents_of(*after, rows), contents_of(*before, rows)) << rows;
    for (std::size_t i = 0; i < before->symbols().size(); ++i)
        EXPECT_EQ(after->name(after->symbols()[i]), before->name(before->symbols()[i]));
    for (std::size_t i = 0; i < before->segments().size(); ++i)
        EXPECT_EQ(after->segments()[i].memory_size - after->segments()[i].file_size,
                  before->segments()[i].memory_size - before->segments()[i].file_size);
}

TEST(CutCubin, OfACutCubinIsTheSame)
{
    const Bytes once = cut(cubin_file("several.cubin"), {"shift", "sum"});
    EXPECT_EQ(cut(once, {"shift", "sum"}), once);
    EXPECT_THAT(*kernels_of(cut(once, {"sum"})), ElementsAre("sum"));
    EXPECT_EQ(cut(once, {"sum"}), cut(cubin_file("several.cubin"), {"sum"}));
}

TEST(CutCubin, DoesNotDependOnTheOrderOfNames)
{
    const Bytes whole = cubin_file("several.cubin");
    const Bytes bytes = cut(whole, {"sum", "scale", "sum"});
    EXPECT_EQ(bytes, cut(whole, {"scale", "sum"}));
    EXPECT_THAT(*kernels_of(bytes), UnorderedElementsAre("scale", "sum"));
}

TEST(CutCubin, NeedsLessMemoryForFewerKernels)
{
    const Bytes whole = cubin_file("several.cubin");
    const Bytes bytes = cut(whole, {"scale"});
    const auto memory = [](const Bytes& image) {
        std::uint64_t sum = 0;
        const auto file = elf::File::parse(image);
        for (const elf::Segment& segment : file->segments()) sum += segment.memory_size - segment.file_size;
        return sum;
    };
    EXPECT_EQ(memory(whole), 7U * 0x400 + 0x80 + 0x100) << "shared memory of seven kernels, .nv.global";
    EXPECT_EQ(memory(bytes), 0x400U + 0x100);
}

TEST(CutCubin, RefusesAKernelThatIsNotThere)
{
    EXPECT_TRUE(failed_with(cut_cubin(cubin_file("several.cubin"), std::vector<std::string>{"scale", "missing"}),
                            ErrorCode::unsupported, "kernel 'missing'"));
    EXPECT_TRUE(failed_with(cut_cubin(cubin_file("linked.cubin"), std::vector<std::string>{"_Z10own_helperf"}),
                            ErrorCode::unsupported, "kernel '_Z10own_helperf'"));
}

TEST(CutCubin, RefusesSectionsThatItDoesNotKnow)
{
    EXPECT_TRUE(failed_with(cut_cubin(cubin_file("mercury.cubin"), std::vector<std::string>{"first"}),
                            ErrorCode::unsupported, "merc"));
    EXPECT_TRUE(failed_with(cut_cubin(as_bytes("//\n.version 8.0\n"), std::vector<std::string>{"first"}),
                            ErrorCode::unsupported));
}

} // namespace
} // namespace warmgraph::backends::cuda::test::cubin_cut_test
