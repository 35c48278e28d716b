// PoCL's program binary must contain so much that a later process compiles nothing (backends/opencl/NOTES.md). Each
// step runs in its own process with an empty PoCL cache, so this program makes no OpenCL call before it forks.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "child_process.hpp"
#include "expect_error.hpp"
#include "opencl_program.hpp"
#include "temp_dir.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/opencl.hpp"

namespace warmgraph::backends::test::opencl_image_test {
namespace {

using warmgraph::test::ChildProcess;
using warmgraph::test::TempDir;

struct Machine {
    explicit Machine(const std::filesystem::path& cache)
    {
        ::setenv("POCL_CACHE_DIR", cache.c_str(), 1);
        ::unsetenv("POCL_KERNEL_CACHE");
        device = take(make_opencl_backend()->open(""));
        stream = take(device->create_stream());
        x = take(device->allocate(4096)).address;
    }
    void run(Module& module, const std::string& kernel, std::uint32_t block) const
    {
        const auto value = [](std::int32_t number) {
            RawParam param;
            append(param.value, number);
            return param;
        };
        RawKernel work{&module,
                       kernel,
                       {1024 / block, 1, 1},
                       {block, 1, 1},
                       {{ParamKind::memory, {}, x, 0}, value(3), value(1024)}};
        take(stream->launch(work));
        take(stream->synchronize());
    }
    [[nodiscard]] std::int32_t first() const
    {
        std::int32_t found = 0;
        take(device->download(std::as_writable_bytes(std::span(&found, 1)), x));
        return found;
    }
    void clear() const { take(device->upload(x, Bytes(4096))); }

    std::shared_ptr<Device> device;
    std::unique_ptr<Stream> stream;
    Address x;
};

void write(const std::filesystem::path& path, ByteView bytes)
{
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Bytes read(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> letters{std::istreambuf_iterator<char>(file), {}};
    const auto view = std::as_bytes(std::span(letters));
    return {view.begin(), view.end()};
}

/// The names of the compiled work-group functions in PoCL's cache.
std::set<std::string> compiled(const std::filesystem::path& cache)
{
    std::set<std::string> found;
    for (const auto& item : std::filesystem::recursive_directory_iterator(cache)) {
        if (item.path().extension() == ".so") found.insert(item.path().string());
    }
    return found;
}

/// Runs `body` in a new process and returns its result.
int in_new_process(const std::function<int()>& body) { return ChildProcess(body).wait(); }

/// Records two functions of one program. The second one is launched after the image of the first one was read.
int record(const TempDir& cache, const TempDir& images)
{
    const Machine machine(cache.path());
    const auto module = take(machine.device->compiler().compile(k_opencl_program, ""));
    machine.run(*module, "add_scalar", 64);
    write(images.path() / "first", take(module->image()));
    machine.run(*module, "scale", 32);
    write(images.path() / "second", take(module->image()));
    const auto again = take(module->image());
    return again == read(images.path() / "second") ? 0 : 1;
}

TEST(OpenclImage, HoldsWhatWasLaunchedSoThatANewProcessCompilesNothing)
{
    const TempDir cold, warm, images;
    ASSERT_EQ(in_new_process([&] { return record(cold, images); }), 0);
    EXPECT_EQ(in_new_process([&] {
                  const Machine machine(warm.path());
                  machine.clear();
                  const auto module = take(machine.device->load(read(images.path() / "second")));
                  const auto loaded = compiled(warm.path());
                  machine.run(*module, "add_scalar", 64);
                  machine.run(*module, "scale", 32);
                  if (machine.first() != 9) return 2;
                  return compiled(warm.path()) == loaded ? 0 : 1;
              }),
              0);
}

TEST(OpenclImage, ServesTwoImagesOfOneSourceInOneProcess)
{
    const TempDir cold, warm, images;
    ASSERT_EQ(in_new_process([&] { return record(cold, images); }), 0);
    EXPECT_EQ(in_new_process([&] {
                  const Machine machine(warm.path());
                  machine.clear();
                  const auto first = take(machine.device->load(read(images.path() / "first")));
                  machine.run(*first, "add_scalar", 64);
                  const auto second = take(machine.device->load(read(images.path() / "second")));
                  const auto loaded = compiled(warm.path());
                  machine.run(*second, "scale", 32);
                  machine.run(*first, "add_scalar", 64);
                  if (machine.first() != 12) return 2;
                  return compiled(warm.path()) == loaded ? 0 : 1;
              }),
              0);
}

} // namespace
} // namespace warmgraph::backends::test::opencl_image_test
