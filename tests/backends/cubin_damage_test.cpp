// Images come from files, so their bytes may be damaged. Reading or cutting any bytes must end with a result or an
// Error (AddressSanitizer checks this).
#include <random>

#include "cubin/cubin.hpp"
#include "cubin/cut.hpp"
#include "cubin_files.hpp"
#include "expect_error.hpp"
#include "stride.hpp"

namespace warmgraph::backends::cuda::test::cubin_damage_test {
namespace {

using warmgraph::test::cubin_file;

struct Outcome {
    std::size_t parsed = 0, cut = 0;
};

void read_and_cut(const Bytes& bytes, Outcome& outcome)
{
    const auto cubin = Cubin::parse(bytes);
    outcome.parsed += cubin.has_value() ? 1 : 0;
    const std::vector<std::string> kernels = {"scale"};
    const auto cut = cut_cubin(bytes, kernels);
    if (!cut) return;
    ++outcome.cut;
    ASSERT_LE(cut->size(), bytes.size());
    ASSERT_TRUE(Cubin::parse(*cut).has_value() || !cubin) << "a cut of a cubin that parses must parse";
}

TEST(CubinDamage, ByTruncationAtAnyLengthIsRefused)
{
    for (const char* name : {"several.cubin", "linked.cubin"}) {
        const Bytes whole = cubin_file(name);
        for (std::size_t size = 0; size < whole.size(); ++size) {
            const Bytes part(whole.begin(),
                             whole.begin() + static_cast<std::ptrdiff_t>(size)); // so that ASan sees its end
            ASSERT_FALSE(Cubin::parse(part)) << size;
            ASSERT_FALSE(cut_cubin(part, std::vector<std::string>{"scale"})) << size;
        }
    }
}

TEST(CubinDamage, OfBitsNeverCrashes)
{
    std::mt19937 random(20240611);
    Outcome outcome;
    for (const char* name : {"several.cubin", "linked.cubin"}) {
        const Bytes whole = cubin_file(name);
        for (std::uint64_t round = 0; round < 4'000; round += warmgraph::test::k_stride) {
            Bytes bytes = whole;
            for (auto flips = 1 + random() % 8; flips > 0; --flips)
                bytes[random() % bytes.size()] ^= std::byte{1} << (random() % 8);
            read_and_cut(bytes, outcome);
        }
    }
    EXPECT_GT(outcome.parsed, 1'000U / warmgraph::test::k_stride)
        << "most damage is in the code, which nobody reads here";
    EXPECT_GT(outcome.cut, 1'000U / warmgraph::test::k_stride);
}

// The tables are small parts of a file, which random damage seldom hits. So this test damages only them.
TEST(CubinDamage, OfItsTablesNeverCrashes)
{
    std::mt19937 random(7);
    Outcome outcome;
    std::size_t rounds = 0;
    for (const char* name : {"several.cubin", "linked.cubin"}) {
        const Bytes whole = cubin_file(name);
        const auto file = elf::File::parse(whole);
        ASSERT_TRUE(file.has_value());
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges = {
            {0, sizeof(elf::FileHeader)},
            {file->header().sections_offset, file->sections().size() * sizeof(elf::Section)},
            {file->header().segments_offset, file->segments().size() * sizeof(elf::Segment)}};
        for (const auto& section : file->sections()) {
            const std::string_view what = file->name(section);
            if (what == ".symtab" || what.starts_with(".nv.info") || what == ".nv.callgraph" ||
                what == ".nv.prototype" || elf::is_relocation(section))
                if (section.size != 0) ranges.emplace_back(section.offset, section.size);
        }
        constexpr std::uint8_t k_values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
        for (const auto& [offset, size] : ranges) {
            for (std::uint64_t round = 0; round < 150; round += warmgraph::test::k_stride, ++rounds) {
                Bytes bytes = whole;
                for (auto pokes = 1 + random() % 3; pokes > 0; --pokes)
                    bytes[offset + random() % size] = static_cast<std::byte>(k_values[random() % std::size(k_values)]);
                read_and_cut(bytes, outcome);
            }
        }
    }
    EXPECT_LT(outcome.cut, rounds) << "some of it must be noticed";
    EXPECT_GT(outcome.cut, 0U);
}

TEST(CubinDamage, WithSectionsThatAllCoverTheFileIsRefused)
{
    Bytes bytes = cubin_file("several.cubin");
    const auto header = load<elf::FileHeader>(bytes);
    for (std::uint64_t i = 1; i < header.section_count; ++i) {
        const std::uint64_t at = header.sections_offset + i * sizeof(elf::Section);
        auto section = load<elf::Section>(bytes, at);
        section.offset = 0;
        section.size = bytes.size() / 24 * 24;
        std::memcpy(bytes.data() + at, &section, sizeof section);
    }
    EXPECT_TRUE(warmgraph::test::failed_with(elf::File::parse(bytes), ErrorCode::corrupt, "sections hold"));
}

} // namespace
} // namespace warmgraph::backends::cuda::test::cubin_damage_test
