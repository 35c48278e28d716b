#include <sys/stat.h>
#include <unistd.h>

#include "command_fixture.hpp"
#include "lacking.hpp"

namespace warmgraph::test::doctor_test {
namespace {

using ::testing::MatchesRegex;

class Doctor : public CommandTest {};

TEST_F(Doctor, FindsNoProblemOnASoundMachineWithAnOpenClDevice)
{
    open_store();
    const CommandResult text = run(0, "doctor");
    for (const char* part :
         {"version", "device opencl:0", "driver", "replay", "OpenSSL", "flatbuffers", "spdlog", "zstd", "CUDA driver",
          "free space", "WARMGRAPH_CACHE_DIR", "world1global_rank0", "no problem found"})
        EXPECT_THAT(text.out, HasSubstr(part));
    const auto json = run("doctor --json").json();
    EXPECT_THAT(json["problems"], IsEmpty());
    EXPECT_THAT(json["devices"], Not(IsEmpty()));
    EXPECT_EQ(json["cache"]["path"], cache().string());
    EXPECT_EQ(json["cache"]["writable"], true);
}

TEST_F(Doctor, TakesAFolderThatIsNotThereYetForNoProblem)
{
    EXPECT_EQ(run("doctor").status, 0);
    EXPECT_FALSE(std::filesystem::exists(cache()));
}

TEST_F(Doctor, BeginsWithTheEnvironmentKey)
{
    const CommandResult empty = run("doctor");
    EXPECT_THAT(empty.out, MatchesRegex("environment key [0-9a-f]{12} \\(opencl:0\\)(.|\n)*"));
    const std::string key = run("doctor --json").json()["devices"][0]["environment_key"];
    EXPECT_THAT(empty.out, HasSubstr(key));
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards_of_machine("backend", "opencl")));
    const CommandResult fits = run(0, "doctor");
    EXPECT_THAT(fits.out, MatchesRegex("environment key [0-9a-f]{12} recorded, " + key + " here: it fits(.|\n)*"));
}

TEST_F(Doctor, SaysThatNoEntryFitsThisMachine)
{
    publish(*open_store(), sample_entry(k_decode, guards_of_machine("device.architecture", "nowhere")));
    const CommandResult text = run(1, "doctor");
    EXPECT_THAT(text.out, HasSubstr("here: nothing fits (1 entry): device.architecture nowhere recorded"));
    EXPECT_THAT(text.out, HasSubstr("no entry of the cache folder fits this machine: device.architecture nowhere"));
    EXPECT_EQ(run("doctor --json").json()["environments"][0]["fit"], "differs");
}

TEST_F(Doctor, SaysWhichHitsAreCompared)
{
    EXPECT_THAT(run("doctor").out, HasSubstr("not set (never, first or 1/N"));
    EXPECT_EQ(run("doctor --json", {{"WARMGRAPH_VERIFY", "1/100"}}).json()["environment"]["WARMGRAPH_VERIFY"], "1/100");
}

TEST_F(Doctor, TakesAnEmptyFolderForNoProblemAndDoesNotMarkIt)
{
    std::filesystem::create_directory(cache());
    const CommandResult text = run(0, "doctor");
    EXPECT_THAT(text.out, HasSubstr("empty: the first recording writes its CACHEDIR.TAG"));
    EXPECT_EQ(run("doctor --json").json()["cache"]["writable"], true);
    EXPECT_TRUE(std::filesystem::is_empty(cache()));
}

TEST_F(Doctor, SaysThatAFolderOfSomebodysIsNoCache)
{
    plant_foreign_files();
    const auto before = snapshot(cache());
    const CommandResult text = run(1, "doctor");
    EXPECT_THAT(text.out, HasSubstr("has no CACHEDIR.TAG of warmgraph"));
    EXPECT_EQ(snapshot(cache()), before);
}

TEST_F(Doctor, SaysWhoElseMayWriteTheFolder)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    ASSERT_EQ(::chmod(cache().c_str(), 0777), 0);
    const CommandResult root = run(1, "doctor");
    EXPECT_THAT(root.out, HasSubstr("may be written by any user"));
    EXPECT_THAT(root.out, HasSubstr("`chmod go-w " + cache().string() + "`"));
    EXPECT_THAT(root.out, HasSubstr("caching is off until this is repaired"));
    ASSERT_EQ(::chmod(cache().c_str(), 0700), 0);
    ASSERT_EQ(::chmod(path_of(entry).parent_path().c_str(), 0777), 0);
    const CommandResult below = run(1, "doctor");
    EXPECT_THAT(below.out, HasSubstr("`chmod go-w " + path_of(entry).parent_path().string() + "`"));
    ASSERT_EQ(::chmod(path_of(entry).parent_path().c_str(), 0700), 0);
    ASSERT_EQ(::chmod(path_of(entry).c_str(), 0666), 0);
    EXPECT_THAT(run("doctor").out, HasSubstr("1 of 1 entries cannot be used"));
    EXPECT_THAT(run("check").out, HasSubstr("chmod go-w "));
}

/// A container image contains a warm cache that another user built.
TEST_F(Doctor, TakesATrustedOwnersFolderForNoProblem)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give files to another user (root)");
    publish(*open_store(), sample_entry(k_decode));
    for (const auto& item : std::filesystem::recursive_directory_iterator(cache()))
        ASSERT_EQ(::chown(item.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown(cache().c_str(), 65534, 65534), 0);
    EXPECT_THAT(run("doctor").out, HasSubstr("belongs to user 65534"));
    EXPECT_THAT(run("doctor").out, HasSubstr("WARMGRAPH_TRUSTED_OWNERS"));
    const CommandResult trusted = run("doctor", {{"WARMGRAPH_TRUSTED_OWNERS", "65534"}});
    EXPECT_EQ(trusted.status, 0) << trusted.out;
    EXPECT_THAT(trusted.out, HasSubstr("read only"));
    EXPECT_THAT(run("doctor", {{"WARMGRAPH_TRUSTED_OWNERS", "me"}}).out, HasSubstr("expected user ids like 1000"));
}

TEST_F(Doctor, NamesEachProblemWithItsCure)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    std::ofstream(path_of(entry), std::ios::binary | std::ios::trunc) << "short";
    const CommandResult result =
        run("doctor", {{"WARMGRAPH_POLICY", "sometimes"}, {"WARMGRAPH_LOG", "loud"}, {"WORLD_SIZE", "8"}});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out, HasSubstr("4 problems"));
    EXPECT_THAT(result.out, HasSubstr("WARMGRAPH_POLICY is 'sometimes'"));
    EXPECT_THAT(result.out, HasSubstr("WARMGRAPH_LOG is 'loud'"));
    EXPECT_THAT(result.out, HasSubstr("WORLD_SIZE is 8, but no rank is given"));
    EXPECT_THAT(result.out, HasSubstr("1 of 1 entries cannot be used"));
    EXPECT_THAT(result.out, HasSubstr("warmgraph check --repair"));
}

TEST_F(Doctor, ReportsQuarantineAndAFolderThatIsAFile)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    damage(path_of(entry));
    EXPECT_EQ(run("check --repair").status, 0);
    EXPECT_THAT(run("doctor").out, HasSubstr("1 damaged file in quarantine"));

    std::ofstream(dir() / "file") << "x";
    const CommandResult file = run(1, "doctor --cache-dir file");
    EXPECT_THAT(file.out, HasSubstr("is a file"));
}

TEST_F(Doctor, SaysWhenThereIsNoOpenClDevice)
{
    const auto empty = dir() / "vendors";
    std::filesystem::create_directory(empty);
    // This must also work without a GPU; with a GPU, doctor would find no problem.
    const CommandResult result =
        run("doctor", {{"OCL_ICD_VENDORS", empty.string() + "/"}, {"WARMGRAPH_CUDA_DRIVER", "libnone.so"}});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out, HasSubstr("pocl-opencl-icd"));
}

} // namespace
} // namespace warmgraph::test::doctor_test
