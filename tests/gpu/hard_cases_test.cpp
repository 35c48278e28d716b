// Each hard case is recorded in one process and restored in another, at other addresses. The results are compared with
// a native run in a third process. If compute-sanitizer is installed, the case is restored once more under it.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "case.hpp"
#include "lacking.hpp"
#include "memcheck.hpp"
#include "run_self.hpp"
#include "temp_dir.hpp"

namespace warmgraph::test::hard_cases_test {
namespace {

std::vector<char> read(const std::string& path)
{
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

float value_at(const std::vector<char>& bytes, std::size_t index, DType dtype)
{
    if (dtype == f32) {
        float value = 0;
        std::memcpy(&value, bytes.data() + index * 4, 4);
        return value;
    }
    std::uint32_t bits = 0;
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + index * 2, 2);
    bits = static_cast<std::uint32_t>(half) << 16;
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return value;
}

class HardCase : public testing::TestWithParam<std::string> {};

TEST_P(HardCase, IsRecordedInOneProcessAndRestoredInAnother)
{
    Case work;
    for (const auto& [name, make] : cases())
        if (name == GetParam()) work = make();
    const TempDir folder;
    const auto prepared = folder.path() / "prepared";
    if (work.prepare) {
        std::filesystem::create_directory(prepared);
        const int status = run_self({GetParam(), "prepare", folder.path().string()});
        if (status == k_lacking_exit) WARMGRAPH_SKIP_LACKING(work.needs);
        ASSERT_EQ(status, 0) << "prepare";
    }
    for (const char* mode : {"native", "record", "replay"}) {
        if (std::string_view{mode} == "replay") std::filesystem::remove_all(prepared);
        ASSERT_EQ(run_self({GetParam(), mode, folder.path().string()}), 0) << mode;
    }
    const auto native = read(folder.path().string() + "/native.bin");
    const auto recorded = read(folder.path().string() + "/record.bin");
    const auto replayed = read(folder.path().string() + "/replay.bin");
    // Not for refused cases: compute-sanitizer uses CUPTI, so they would be refused for another reason.
    if (const auto prefix = memcheck(); !prefix.empty() && work.expected == Outcome::recorded) {
        EXPECT_EQ(run_self({GetParam(), "replay", folder.path().string()}, prefix), 0) << "memcheck";
    }
    ASSERT_FALSE(native.empty());
    ASSERT_EQ(recorded.size(), native.size());
    ASSERT_EQ(replayed.size(), native.size());

    if (work.tolerance == 0) {
        EXPECT_TRUE(native == recorded);
        EXPECT_TRUE(native == replayed);
        return;
    }
    const DType dtype = work.memory.back().dtype; // in a case with a tolerance, all results have the same type
    for (std::size_t i = 0; i < native.size() / size_of(dtype); ++i) {
        const float expected = value_at(native, i, dtype);
        const auto limit = static_cast<float>(work.tolerance * std::max(1.0, std::abs(static_cast<double>(expected))));
        ASSERT_NEAR(value_at(recorded, i, dtype), expected, limit) << i;
        ASSERT_NEAR(value_at(replayed, i, dtype), expected, limit) << i;
    }
}

std::vector<std::string> names()
{
    std::vector<std::string> all;
    for (const auto& item : cases()) all.push_back(item.first);
    return all;
}
INSTANTIATE_TEST_SUITE_P(All, HardCase, testing::ValuesIn(names()), [](const auto& tested) { return tested.param; });

} // namespace
} // namespace warmgraph::test::hard_cases_test

int main(int argc, char** argv)
{
    if (argc == 5 && std::string_view{argv[1]} == "--child")
        return warmgraph::test::run_child(argv[2], argv[3], argv[4]);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
