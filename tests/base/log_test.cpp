// Tests the log. A process makes the logger only once, so every case runs in a child that sets its own environment.
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <stdlib.h>

#include "child_process.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::test::log_test {
namespace {

/// Logs one line at each level in a process with this WARMGRAPH_LOG. Returns the text that the process prints to
/// standard error.
std::string printed_at(const char* level)
{
    const TempDir dir;
    const std::string path = (dir.path() / "stderr").string();
    ChildProcess child([&] {
        if (level == nullptr) {
            ::unsetenv("WARMGRAPH_LOG");
        } else {
            ::setenv("WARMGRAPH_LOG", level, 1);
        }
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
        if (file < 0 || ::dup2(file, STDERR_FILENO) < 0) return 1;
        log().trace("a trace");
        log().debug("a detail");
        log().info("saved {}", "decode");
        log().warn("odd");
        log().error("bad");
        return &log() == &log() ? 0 : 2;
    });
    EXPECT_EQ(child.wait(), 0);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(Log, PrintsWarningsAndErrorsOnlyWhenNothingIsSet)
{
    EXPECT_EQ(printed_at(nullptr), "warmgraph: warning: odd\nwarmgraph: error: bad\n");
    EXPECT_EQ(printed_at(""), printed_at(nullptr));
    EXPECT_EQ(printed_at("warn"), printed_at(nullptr));
}

TEST(Log, FollowsTheEnvironment)
{
    EXPECT_EQ(printed_at("off"), "");
    EXPECT_EQ(printed_at("error"), "warmgraph: error: bad\n");
    EXPECT_EQ(printed_at("info"), "warmgraph: saved decode\nwarmgraph: warning: odd\nwarmgraph: error: bad\n");
    EXPECT_EQ(printed_at("debug"), "warmgraph: a detail\n" + printed_at("info"));
    EXPECT_EQ(printed_at("trace"), "warmgraph: a trace\n" + printed_at("debug"));
}

TEST(Log, OfATextFromOutsideCannotDriveATerminal)
{
    const TempDir dir;
    const std::string path = (dir.path() / "stderr").string();
    ChildProcess child([&] {
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
        if (file < 0 || ::dup2(file, STDERR_FILENO) < 0) return 1;
        log().warn("{}\nsecond line", "a\x1b[31mb\u202ec");
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), "warmgraph: warning: a\\x1b[31mb\\xe2\\x80\\xaec\nsecond line\n");
}

TEST(Log, AnUnknownLevelIsNamedOnceAndTakenAsWarn)
{
    EXPECT_EQ(printed_at("verbose"), "warmgraph: warning: WARMGRAPH_LOG is 'verbose', expected trace, debug, info, "
                                     "warn, error or off: using warn\n" +
                                         printed_at("warn"));
}

/// Logs one line at each level to a receiver. Returns the lines that it gets, e.g. "2 saved decode|3 odd|", and 0 when
/// the child succeeded.
std::string received_at(const char* level)
{
    const TempDir dir;
    const auto path = dir.path() / "lines";
    ChildProcess child([&] {
        if (level == nullptr) {
            ::unsetenv("WARMGRAPH_LOG");
        } else {
            ::setenv("WARMGRAPH_LOG", level, 1);
        }
        std::ofstream lines(path);
        bool refused_within = false;
        const bool is_set = set_log_receiver([&](spdlog::level::level_enum at, const std::string& line) {
            lines << static_cast<int>(at) << " " << line << "|";
            refused_within = !set_log_receiver({});
            log().error("from within"); // must be dropped: otherwise the receiver would call itself for ever
        });
        log().debug("a detail");
        log().info("saved {}", "decode");
        log().warn("odd");
        const bool is_reset = set_log_receiver({});
        log().warn("on standard error");
        return is_set && is_reset && refused_within ? 0 : 1;
    });
    EXPECT_EQ(child.wait(), 0);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(Log, LinesGoToAReceiverWhichChoosesAmongThem)
{
    EXPECT_EQ(received_at(nullptr), "2 saved decode|3 odd|");
    EXPECT_EQ(received_at("warn"), "3 odd|");
    EXPECT_EQ(received_at("debug"), "1 a detail|2 saved decode|3 odd|");
}

} // namespace
} // namespace warmgraph::test::log_test
