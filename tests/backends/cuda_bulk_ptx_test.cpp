// Tests the PTX text of the kernels for bulk memory: it is made from the sources beside it, and suits every supported
// driver and device.
#include <cstdlib>
#include <regex>
#include <sstream>

#include "bulk/embedded_kernels.hpp"
#include "lacking.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::backends::test::cuda_bulk_ptx_test {
namespace {

namespace fs = std::filesystem;

const fs::path k_folder = WARMGRAPH_BULK_SOURCES;

std::string read(const fs::path& path)
{
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(CudaBulkPtx, IsMadeOfTheSourcesBesideIt)
{
    const std::string sources = read(k_folder / "kernel_work.hpp") + read(k_folder / "kernels.cu");
    EXPECT_NE(read(k_folder / "kernels.ptx").find(to_hex(sha256(as_bytes(sources)))), std::string::npos)
        << "kernels.cu or kernel_work.hpp was changed since: run backends/cuda/src/bulk/make_kernels.sh";
}

TEST(CudaBulkPtx, LiesBesideTheFatBinaryOfTheSameSources)
{
    const std::string fatbin = read(k_folder / "kernels.fatbin");
    EXPECT_NE(read(k_folder / "kernels.ptx").find(to_hex(sha256(as_bytes(fatbin)))), std::string::npos)
        << "run backends/cuda/src/bulk/make_kernels.sh";
    EXPECT_EQ(std::memcmp(cuda::bulk::k_kernels_fatbin, fatbin.data(), fatbin.size()), 0);
}

TEST(CudaBulkPtx, IsInTheLibraryAsItIsInTheFile)
{
    EXPECT_EQ(std::string(cuda::bulk::k_kernels_ptx), read(k_folder / "kernels.ptx"));
}

TEST(CudaBulkPtx, IsForTheOldestDriverAndForDevicesFromTuringOn)
{
    const std::string text = cuda::bulk::k_kernels_ptx;
    std::smatch version;
    ASSERT_TRUE(std::regex_search(text, version, std::regex(R"(\n\.version (\d+)\.(\d+)\n\.target sm_75\n)")));
    // The backend needs CUDA 12.4 or later, which can read PTX 8.4.
    EXPECT_LE(10 * std::stoi(version[1]) + std::stoi(version[2]), 84);
    const std::regex entry(R"(\.visible \.entry (\w+)\()");
    EXPECT_EQ(std::distance(std::sregex_iterator(text.begin(), text.end(), entry), {}), 7);
}

TEST(CudaBulkPtx, IsAssembledForEachArchitecture)
{
    const std::string ptxas = WARMGRAPH_PTXAS;
    if (ptxas.empty() || !fs::exists(ptxas)) WARMGRAPH_SKIP_LACKING("ptxas");
    const warmgraph::test::TempDir folder;
    for (const char* architecture : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90"}) {
        const std::string command = "'" + ptxas + "' -arch=" + architecture + " '" +
                                    (k_folder / "kernels.ptx").string() + "' -o '" +
                                    (folder.path() / "kernels.cubin").string() + "'";
        EXPECT_EQ(std::system(command.c_str()), 0) << command;
    }
}

} // namespace
} // namespace warmgraph::backends::test::cuda_bulk_ptx_test
