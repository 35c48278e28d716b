// CUPTI allows one subscriber per process. While a profiler is subscribed, nothing is recorded, but entries are
// replayed. Each step runs in its own process. This test is built twice, like cuda_facade_test.cpp.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "cache_options.hpp"
#include "cuda_or_fake.hpp"
#include "run_self.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::cuda_profiler_test {
namespace {

constexpr std::int64_t k_count = 64;
#ifdef WARMGRAPH_FAKE_CUDA
const std::vector<const char*> k_cupti{WARMGRAPH_FAKE_CUDA};
#else
const std::vector<const char*> k_cupti{"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                       "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
#endif

/// Subscribes to CUPTI, as a profiler does.
void attach_profiler()
{
    void* library = nullptr;
    for (const char* name : k_cupti)
        if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    using Callback = void (*)(void*, int, std::uint32_t, const void*);
    using Subscribe = int (*)(void** handle, Callback callback, void* data);
    const auto subscribe =
        library != nullptr ? reinterpret_cast<Subscribe>(::dlsym(library, "cuptiSubscribe")) : nullptr;
    if (subscribe == nullptr) throw std::runtime_error("there is no CUPTI to attach by");
    void* handle = nullptr;
    const int status = subscribe(&handle, [](void*, int, std::uint32_t, const void*) {}, nullptr);
    if (status != 0) throw std::runtime_error("cuptiSubscribe gave " + std::to_string(status));
}

/// Calls y = x + 1 once in this process and writes the outcome and the reason.
int run_child(const std::string& mode, const std::filesystem::path& folder)
try {
    choose_driver();
    if (mode == "profiled") attach_profiler();
    const Device device{"cuda:0"};
    const Program program = device.program("small", k_program);
    const CacheOptions options = cache_options("profiled", folder / "cache");
    Cache cache{options};
    Spec spec = x_to_y(i32, k_count, {program});
    Function function = cache.wrap("add_one", device, spec, [&](Recorder& r) {
        r.stream().copy(r["y"], r["x"], k_count * 4);
        r.stream().launch(program, "add_scalar", {.grid = {1}, .block = {k_count}}, r["y"], std::int32_t{1},
                          static_cast<std::int32_t>(k_count));
    });
    const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 41));
    const Buffer y = device.allocate(k_count * 4);
    const Outcome outcome = function({{"x", x}, {"y", y}});
    device.synchronize();
    if (y.read<std::int32_t>() != std::vector<std::int32_t>(k_count, 42)) throw std::runtime_error("a wrong result");
    std::ofstream{folder / "answer"} << to_string(outcome) << ": " << function.report().reason;
    return 0;
} catch (const std::exception& error) {
    std::cerr << mode << ": " << error.what() << "\n";
    return 1;
}

std::string answer_of(const std::string& mode, const std::filesystem::path& folder)
{
    const int status = run_self({mode, folder.string()});
    if (status != 0) return "failed with status " + std::to_string(status);
    std::string answer;
    std::getline(std::ifstream{folder / "answer"}, answer);
    return answer;
}

TEST(CudaProfiler, KeepsFromRecordingWithTheCureAndNotFromReplaying)
{
    const TempDir folder;
    EXPECT_THAT(answer_of("profiled", folder.path()), AllOf(StartsWith("refused: "), HasSubstr("cuptiSubscribe"),
                                                            HasSubstr("a profiler) is attached: detach it to record")));
    EXPECT_THAT(answer_of("plain", folder.path()), StartsWith("recorded: "));
    EXPECT_EQ(answer_of("profiled", folder.path()), "replayed: ");
}

} // namespace
} // namespace warmgraph::test::cuda_profiler_test

int main(int argc, char** argv)
{
    if (argc == 4 && std::string_view{argv[1]} == "--child")
        return warmgraph::test::cuda_profiler_test::run_child(argv[2], argv[3]);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
