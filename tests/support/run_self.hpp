// Runs the program of this test once more in a new process. The arguments after "--child" say what the process does.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace warmgraph::test {

/// Runs `prefix... <this program> --child arguments...` and waits for it. Returns the exit status, 1000 + the signal
/// that ended it, or -1 when it could not be started. The prefix is the path of a tool with its options, e.g. from
/// memcheck().
[[nodiscard]] inline int run_self(const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& prefix = {})
{
    std::vector<std::string> all = prefix;
    all.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    all.emplace_back("--child");
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& argument : all) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_t child = 0;
    if (::posix_spawn(&child, pointers[0], nullptr, nullptr, pointers.data(), environ) != 0) return -1;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

} // namespace warmgraph::test
