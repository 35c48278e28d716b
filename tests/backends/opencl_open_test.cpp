// Opens OpenCL devices ahead of their use, with right and with wrong settings.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "child_process.hpp"
#include "expect_error.hpp"
#include "never_destroyed.hpp"
#include "opencl_environment.hpp"
#include "opencl_program.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/opencl.hpp"

namespace warmgraph::backends::test::opencl_open_test {
namespace {

using warmgraph::test::ChildProcess;
using warmgraph::test::never_destroyed;

TEST(OpenclOpen, SaysWhatToInstallWhereThereIsNoPlatform)
{
    const int status = ChildProcess([] {
                           ::setenv("OCL_ICD_VENDORS", "/nonexistent/", 1); // where the ICD loader looks for drivers
                           const auto devices = make_opencl_backend()->devices();
                           const bool says_cure =
                               !devices && devices.error().message.find("pocl-opencl-icd") != std::string::npos;
                           return says_cure && devices.error().code == ErrorCode::not_found ? 0 : 1;
                       }).wait();
    EXPECT_EQ(status, 0);
}

// In a child, opens devices with $WARMGRAPH_OPENCL set to `library`. Returns 0 if the error has the code `code` and a
// text that contains `cure`.
int fails_with_loader(const char* library, ErrorCode code, std::string_view cure)
{
    return ChildProcess([=] {
               ::setenv("WARMGRAPH_OPENCL", library, 1);
               const auto devices = make_opencl_backend()->devices();
               return !devices && devices.error().code == code && devices.error().message.contains(cure) ? 0 : 1;
           })
        .wait();
}

TEST(OpenclOpen, SaysWhatToInstallWhereThereIsNoLoader)
{
    EXPECT_EQ(fails_with_loader("libnone.so", ErrorCode::not_found, "ocl-icd-libopencl1"), 0);
    EXPECT_EQ(fails_with_loader("libm.so.6", ErrorCode::unsupported, "has no clGetPlatformIDs"), 0);
}

TEST(OpenclOpen, FindsTheLoaderThatIsThereLater)
{
    const int status = ChildProcess([] {
                           ::setenv("WARMGRAPH_OPENCL", "libnone.so", 1);
                           const bool is_missing = !make_opencl_backend()->devices();
                           ::unsetenv("WARMGRAPH_OPENCL");
                           return is_missing && make_opencl_backend()->devices() ? 0 : 1;
                       }).wait();
    EXPECT_EQ(status, 0);
}

TEST(OpenclOpen, ByTwoThreadsAtOnceFindsTheDeviceForBoth)
{
    // Each round runs in a new process, because PoCL initialises itself only once. The second thread starts while PoCL
    // initialises itself.
    for (int i = 0; i < 5; ++i) {
        const int status = ChildProcess([] {
                               bool first = false, second = false;
                               {
                                   const std::jthread one([&] { first = make_opencl_backend()->open("").has_value(); });
                                   const std::jthread other([&] {
                                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                       second = make_opencl_backend()->open("").has_value();
                                   });
                               }
                               return first && second ? 0 : 1;
                           }).wait();
        EXPECT_EQ(status, 0);
    }
}

TEST(OpenclOpen, AProcessMayExitWhileAKernelOfAnOpenStreamIsCompiled)
{
    for (int i = 0; i < 5; ++i) {
        const warmgraph::test::TempDir empty_cache;
        ChildProcess child([&]() -> int {
            ::setenv("POCL_CACHE_DIR", empty_cache.path().c_str(), 1);
            auto& device = never_destroyed<std::shared_ptr<Device>>(*make_opencl_backend()->open(""));
            auto& module = never_destroyed<std::unique_ptr<Module>>(*device->compiler().compile(k_opencl_program, ""));
            auto& stream = never_destroyed<std::unique_ptr<Stream>>(*device->create_stream());
            RawParam x, count;
            x.kind = ParamKind::memory;
            x.address = device->allocate(256)->address;
            append(count.value, std::int32_t{64});
            const auto launched = stream->launch({module.get(), "iota", {1, 1, 1}, {64, 1, 1}, {x, count}});
            std::exit(launched ? 0 : 3);
        });
        EXPECT_EQ(child.wait(), 0);
    }
}

TEST(OpenclOpen, FindsDevicesByIndexAndByPartOfTheName)
{
    const auto backend = make_opencl_backend();
    const auto devices = take(backend->devices());
    ASSERT_FALSE(devices.empty());
    EXPECT_EQ(devices.front().id, "opencl:0");
    const auto first = take(backend->open("0"));
    EXPECT_EQ(first->name(), devices.front().name);
    const auto same = take(backend->open(""));
    EXPECT_EQ(first, same);
    std::string part = devices.front().name.substr(0, 5);
    for (char& letter : part) letter = static_cast<char>(std::toupper(letter));
    const auto by_name = take(backend->open(part));
    EXPECT_EQ(by_name, first);
}

TEST(OpenclOpen, ListsTheDevicesWhenNoneMatches)
{
    const auto backend = make_opencl_backend();
    EXPECT_TRUE(failed_with(backend->open("no such device"), ErrorCode::not_found, "opencl:0 ("));
    EXPECT_TRUE(failed_with(backend->open("9999"), ErrorCode::not_found, "opencl:0 ("));
}

TEST(OpenclOpen, RefusesAnUnknownWayToReplay)
{
    ::setenv("WARMGRAPH_OPENCL_REPLAY", "commandbuffer", 1);
    EXPECT_TRUE(
        failed_with(make_opencl_backend()->open(""), ErrorCode::invalid_argument, "auto, command_buffer or enqueue"));
    ::unsetenv("WARMGRAPH_OPENCL_REPLAY");
}

TEST(OpenclOpen, SaysHowItReplaysAndWhy)
{
    const auto mode_with = [](const char* wanted) {
        ::setenv("WARMGRAPH_OPENCL_REPLAY", wanted, 1);
        const auto device = make_opencl_backend()->open("");
        ::unsetenv("WARMGRAPH_OPENCL_REPLAY");
        return device ? (*device)->replay_mode() : device.error().message;
    };
    EXPECT_THAT(mode_with("enqueue"), HasSubstr("re-enqueue (set"));
    EXPECT_THAT(mode_with("auto"), testing::MatchesRegex("(re-enqueue|command buffer) .*"));
}

} // namespace
} // namespace warmgraph::backends::test::opencl_open_test
