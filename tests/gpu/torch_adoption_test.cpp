// PyTorch captures a graph, Python adopts it through the C interface, and this program replays it at other addresses.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "cache_options.hpp"
#include "lacking.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::torch_adoption_test {
namespace {

namespace fs = std::filesystem;

/// The path of a script or of the shared library. It is beside this program, or in the source tree.
fs::path beside(const char* name) { return fs::read_symlink("/proc/self/exe").parent_path() / name; }

std::vector<std::byte> read(const fs::path& path)
{
    std::ifstream file{path, std::ios::binary};
    std::vector<char> text{std::istreambuf_iterator<char>{file}, {}};
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

float bf16_at(const std::vector<std::byte>& bytes, std::size_t index)
{
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + index * 2, 2);
    const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16U;
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return value;
}

class TorchAdoption : public testing::Test {
protected:
    int adopt(const std::string& more = "") const
    {
        const std::string command = "python3 " + beside("torch/adopt_torch_graph.py").string() + " " +
                                    beside("libwarmgraph.so").string() + " " + folder.path().string() + " " + more;
        const int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    TempDir folder;
};

/// Replays from the files that Python wrote, in this process, at other addresses and without PyTorch.
class Replayed {
public:
    explicit Replayed(const fs::path& folder) : m_folder(folder)
    {
        m_junk.push_back(m_device.allocate(12'345'678));
        std::ifstream index{folder / "regions.txt"};
        std::int64_t rows = 0, columns = 0;
        index >> rows >> columns;
        std::string name;
        std::uint64_t size = 0;
        while (index >> name >> size) {
            Buffer buffer = m_device.allocate(size);
            if (name != "out") buffer.upload(read(folder / (name + ".bin")));
            if (name != "x" && name != "out") m_spec.states.push_back(weights(name, buffer));
            m_memory.emplace(name, std::move(buffer));
        }
        m_spec.version = "torch-block 1";
        m_spec.inputs = {input("x", bf16, {rows, columns})};
        m_spec.outputs = {output("out", bf16, {rows, columns})};
    }
    /// Loads the entry, replays it once, prints the phases, and compares the results with PyTorch's own replay.
    void run()
    {
        const CacheOptions options = cache_options("torch-block", m_folder / "cache");
        Cache cache{options};
        Function block = cache.load("block", m_device, m_spec);
        ASSERT_EQ(block({{"x", m_memory.at("x")}, {"out", m_memory.at("out")}}), Outcome::replayed)
            << block.report().reason;
        m_device.synchronize();
        for (const auto& [phase, milliseconds] : block.report().phases)
            std::printf("  %-14s %8.2f ms\n", phase.c_str(), milliseconds);
        std::printf("  %-14s %8.2f ms\n", "first call", block.report().first_call_ms);
        compare();
    }

private:
    void compare() const
    {
        const auto expected = read(m_folder / "out.bin");
        const auto result = m_memory.at("out").read<std::byte>();
        ASSERT_EQ(result.size(), expected.size());
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < result.size() / 2; ++i) {
            worst = std::max(worst, std::abs(static_cast<double>(bf16_at(result, i)) - bf16_at(expected, i)));
            largest = std::max(largest, std::abs(static_cast<double>(bf16_at(expected, i))));
        }
        std::printf("  largest difference %g of %g\n", worst, largest);
        EXPECT_GT(largest, 0.5);
        EXPECT_LE(worst, largest * 0.02); // bf16 rounds by up to 1/256 of a value, here several times
    }

    fs::path m_folder;
    Device m_device{"cuda:0"};
    std::vector<Buffer> m_junk;
    Spec m_spec;
    std::map<std::string, Buffer> m_memory;
};

/// Adopts eager models of transformers and torchvision, training, sampling, an FFT and dropout. The log has their
/// table.
TEST(TorchModels, OfEachKindAreAdoptedAndDoWhatPyTorchDoes)
{
    const std::string command = "python3 " + beside("torch/models.py").string() + " " +
                                beside("libwarmgraph.so").string() + " --cleared --tries 3";
    if (std::system("python3 -c 'import torch, torchvision, transformers'") != 0)
        WARMGRAPH_SKIP_LACKING("PyTorch, torchvision and transformers");
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "1: wrong, or not captured; 3: refused";
}

/// Unpacks the wheel that `./dev gpu-build` puts beside this program. Returns false when there is no wheel.
bool unpack_wheel(const fs::path& folder)
{
    std::error_code absent;
    for (const auto& item : fs::directory_iterator(beside("wheel"), absent)) {
        const std::string command = "python3 -m zipfile -e " + item.path().string() + " " + folder.string();
        if (item.path().extension() == ".whl") return std::system(command.c_str()) == 0;
    }
    return false;
}

/// Runs a test script of the Python package, with the wheel or with the sources and the library beside this program.
int run_with_package(const std::string& script)
{
    const TempDir folder;
    const bool is_wheel = unpack_wheel(folder.path());
    std::printf("  the package of %s\n", is_wheel ? "the wheel" : "the sources");
    if (is_wheel)
        ::unsetenv("WARMGRAPH_LIBRARY");
    else
        ::setenv("WARMGRAPH_LIBRARY", beside("libwarmgraph.so").c_str(), 1);
    ::setenv("PYTHONPATH", is_wheel ? folder.path().c_str() : beside("package").c_str(), 1);
    const int status = std::system(("python3 " + beside("python").string() + "/" + script).c_str());
    ::unsetenv("PYTHONPATH");
    ::unsetenv("WARMGRAPH_LIBRARY");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Tests the Python package: one process records each function, and the next one replays it. The log has the table.
TEST(TorchFunctions, AreReplayedInTheNextProcessWithoutACompiler)
{
    if (std::system("python3 -c 'import torch, transformers'") != 0) WARMGRAPH_SKIP_LACKING("PyTorch and transformers");
    EXPECT_EQ(run_with_package("cases.py"), 0);
}

/// Programs capture graphs themselves: two processes record them, and a third serves them. The log has the table.
TEST(TorchPrograms, AreRecordedWithoutAChangeAndServed)
{
    if (std::system("python3 -c 'import torch, torchvision, transformers'") != 0)
        WARMGRAPH_SKIP_LACKING("PyTorch, torchvision and transformers");
    EXPECT_EQ(run_with_package("record_all.py"), 0);
}

#ifdef SERVE_BINARY
/// Tests samples/serve: PyTorch records a language model; Python without PyTorch, and C++, generate the same tokens.
TEST(TorchServing, NeedsNoPyTorch)
{
    if (std::system("python3 -c 'import torch, transformers, safetensors'") != 0)
        WARMGRAPH_SKIP_LACKING("PyTorch, transformers and safetensors");
    const fs::path carried = beside("warmgraph_serve"),
                   program = fs::exists(carried) ? carried : fs::path{SERVE_BINARY};
    EXPECT_EQ(run_with_package("serve.py --samples " + beside("python/samples/serve").string() + " --program " +
                               program.string()),
              0);
}
#endif

TEST_F(TorchAdoption, ProvenByTwoCapturesItReplaysWithoutPyTorch)
{
    ASSERT_EQ(adopt(), 0);
    Replayed{folder.path()}.run();
}

/// Replays one token through sixteen layers: about 180 kernels of Triton, cuBLASLt and the fused attention.
TEST_F(TorchAdoption, ADecodeStepOfSixteenLayersIsReplayed)
{
    ::setenv("WG_TORCH_LAYERS", "16", 1);
    ::setenv("WG_TORCH_ROWS", "1", 1);
    const int status = adopt();
    ::unsetenv("WG_TORCH_LAYERS");
    ::unsetenv("WG_TORCH_ROWS");
    ASSERT_EQ(status, 0);
    std::uintmax_t stored = 0;
    for (const auto& item : fs::recursive_directory_iterator(folder.path() / "cache"))
        if (item.is_regular_file() && item.path().filename() != "usage.json") stored += item.file_size();
    std::printf("  stored %.2f MB\n", static_cast<double>(stored) / 1e6);
    Replayed{folder.path()}.run();
}

TEST_F(TorchAdoption, OneCaptureAloneProvesNothing) { EXPECT_EQ(adopt("once"), 3); }

} // namespace
} // namespace warmgraph::test::torch_adoption_test
