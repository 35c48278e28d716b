// Tests the facts that the library finds about its process.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <openssl/evp.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temp_dir.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::test::process_test {
namespace {

/// The build id of a file, as readelf from binutils shows it.
std::string readelf_build_id(const std::string& path)
{
    struct Close {
        void operator()(std::FILE* pipe) const { ::pclose(pipe); }
    };
    const std::unique_ptr<std::FILE, Close> pipe(::popen(("readelf -n '" + path + "'").c_str(), "r"));
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
        text.append(buffer.data(), size);
    std::smatch match;
    return std::regex_search(text, match, std::regex("Build ID: ([0-9a-f]+)")) ? match.str(1) : "(none)";
}

TEST(Process, BuildIdOfThisBinaryIsWhatReadelfSays)
{
    const void* code = reinterpret_cast<const void*>(&readelf_build_id);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    EXPECT_EQ(binary_of(code), self);
    ASSERT_TRUE(build_id_of(code));
    EXPECT_EQ(build_id_of(code)->size(), 40U);
    EXPECT_EQ(*build_id_of(code), readelf_build_id(self));
}

TEST(Process, BuildIdOfAFunctionInASharedLibraryIsTheLibrarys)
{
    const void* code = reinterpret_cast<const void*>(&EVP_MD_CTX_new);
    EXPECT_NE(binary_of(code).find("libcrypto"), std::string::npos) << binary_of(code);
    EXPECT_EQ(build_id_of(code).value_or("(none)"), readelf_build_id(binary_of(code)));
    EXPECT_NE(build_id_of(code), build_id_of(reinterpret_cast<const void*>(&readelf_build_id)));
}

TEST(Process, BuildIdOfAFileIsThatOfWhatIsLoadedFromIt)
{
    const void* code = reinterpret_cast<const void*>(&readelf_build_id);
    EXPECT_EQ(build_id_of_file("/proc/self/exe"), build_id_of(code));
    const void* library = reinterpret_cast<const void*>(&EVP_MD_CTX_new);
    EXPECT_EQ(build_id_of_file(binary_of(library)), build_id_of(library));
}

TEST(Process, WhatIsNoElfFileHasNoBuildIdAndBlocksNobody)
{
    const TempDir dir;
    const std::string fifo = (dir.path() / "fifo").string(), copy = (dir.path() / "copy").string();
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    for (const std::string& path : {fifo, dir.path().string(), std::string("/dev/zero"), std::string("/nowhere/at/all"),
                                    std::string("/proc/self/maps"), std::string()})
        EXPECT_FALSE(build_id_of_file(path)) << path;

    // Damages each byte in the first page of a real program in turn. The result may be another id or no id.
    std::vector<char> bytes(4096);
    ASSERT_TRUE(std::ifstream("/proc/self/exe", std::ios::binary).read(bytes.data(), 4096));
    for (std::size_t at = 0; at < 1024; ++at) {
        std::vector<char> damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
        std::ofstream(copy, std::ios::binary | std::ios::trunc).write(damaged.data(), 4096);
        static_cast<void>(build_id_of_file(copy));
    }
    for (const std::size_t size : {0UL, 4UL, 63UL, 64UL, 100UL, 500UL}) {
        std::ofstream(copy, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(size));
        EXPECT_FALSE(build_id_of_file(copy)) << size;
    }
}

TEST(Process, AnAddressOutsideEveryBinaryHasNoBuildId)
{
    const auto heap = std::make_unique<int>(0);
    EXPECT_FALSE(build_id_of(heap.get()));
    EXPECT_FALSE(build_id_of(nullptr));
    EXPECT_EQ(binary_of(heap.get()), "(no binary)");
}

TEST(Process, UuidsAreVersion4AndNeverTheSame)
{
    const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        const std::string uuid = random_uuid();
        EXPECT_TRUE(std::regex_match(uuid, form)) << uuid;
        seen.insert(uuid);
    }
    EXPECT_EQ(seen.size(), 1000U);
}

TEST(Process, HostAndBootHaveNames)
{
    EXPECT_FALSE(host_name().empty());
    EXPECT_EQ(boot_id(), boot_id());
    EXPECT_EQ(boot_id().size(), 36U);
}

TEST(Process, EnvironmentTellsEmptyFromUnset)
{
    ::setenv("WARMGRAPH_TEST_VARIABLE", "", 1);
    EXPECT_EQ(environment("WARMGRAPH_TEST_VARIABLE"), "");
    ::unsetenv("WARMGRAPH_TEST_VARIABLE");
    EXPECT_EQ(environment("WARMGRAPH_TEST_VARIABLE"), std::nullopt);
}

TEST(HostMappings, AreReadFromTheSystemsForm)
{
    const HostMappings mappings("7f10000-7f20000 r--p 00000000 08:01 173521      /opt/a b/libx.so\n"
                                "55000000-55021000 rw-p 00000000 00:00 0          [heap]\n"
                                "1000-2000 ---p 00000000 00:00 0 \n"
                                "3000-4000 -wxp 00000000 00:00 0\n"
                                "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n"
                                "no mapping\n-5-6 r\n9-8 r--p\n7-\n\n"
                                "8000-9000 rw-s 00000000 00:00 0");
    EXPECT_EQ(mappings.at(0x7f10000), "/opt/a b/libx.so");
    EXPECT_EQ(mappings.at(0x7f1ffff), "/opt/a b/libx.so");
    EXPECT_EQ(mappings.at(0x7f20000), std::nullopt);
    EXPECT_EQ(mappings.at(0x55000008), "[heap]");
    EXPECT_EQ(mappings.at(0x8fff), "");
    for (const std::uint64_t unreadable : {0x0ULL, 0x7fffULL, 0x1000ULL, 0x3000ULL, 0xffffffffff600000ULL, ~0ULL})
        EXPECT_EQ(mappings.at(unreadable), std::nullopt) << unreadable;
    EXPECT_EQ(HostMappings("").at(0), std::nullopt);
}

TEST(HostMappings, OfThisProcessHoldItsMemoryAndItsCode)
{
    const HostMappings mappings = HostMappings::read();
    static const int s_here = 1;
    const auto of_the_stack = ::getauxval(AT_RANDOM); // an address on the stack, also with AddressSanitizer
    const auto at = [&](const void* address) { return mappings.at(reinterpret_cast<std::uintptr_t>(address)); };
    EXPECT_EQ(mappings.at(of_the_stack), "[stack]");
    ASSERT_TRUE(at(&s_here));
    EXPECT_NE(at(&s_here)->find("base_test"), std::string::npos);
    EXPECT_EQ(at(nullptr), std::nullopt);
}

TEST(Process, OnlyTheOneOfThatNumberAndStartIsRunning)
{
    const std::uint64_t start = start_of_process(::getpid());
    EXPECT_GT(start, 0U);
    EXPECT_TRUE(is_running(::getpid(), start));
    EXPECT_TRUE(is_running(::getpid(), 0)) << "not known when";
    EXPECT_FALSE(is_running(::getpid(), start + 1)) << "an earlier one of this number";
    EXPECT_FALSE(is_running(0, 0));
    EXPECT_FALSE(is_running(-1, 0)) << "kill() would mean all";
    EXPECT_TRUE(is_running(1, 0)) << "of whichever user";

    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    const std::uint64_t start_of_child = start_of_process(child);
    EXPECT_GE(start_of_child, start);
    EXPECT_TRUE(is_running(child, start_of_child));
    ::kill(child, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(is_running(child, start_of_child)) << "dead, and not waited for";
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(is_running(child, start_of_child));
    EXPECT_EQ(start_of_process(child), 0U);
}

/// In the file, the fields come after the program's name, which may contain brackets and spaces.
TEST(Process, AStartIsFoundWhateverTheProgramIsCalled)
{
    const std::uint64_t start = start_of_process(::getpid());
    std::array<char, 16> before{};
    ::prctl(PR_GET_NAME, before.data());
    ::prctl(PR_SET_NAME, "a) Z 1 (b) 7 8");
    EXPECT_EQ(start_of_process(::getpid()), start);
    EXPECT_TRUE(is_running(::getpid(), start));
    ::prctl(PR_SET_NAME, before.data());
}

} // namespace
} // namespace warmgraph::test::process_test
