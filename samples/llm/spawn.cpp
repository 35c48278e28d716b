#include "spawn.hpp"

#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llm {
namespace {

void check(int error, const std::string& what)
{
    if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

class FileActions {
public:
    FileActions() { check(::posix_spawn_file_actions_init(&m_actions), "posix_spawn_file_actions_init"); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;
    ~FileActions() { ::posix_spawn_file_actions_destroy(&m_actions); }

    void redirect(int descriptor, const std::filesystem::path& file)
    {
        if (file.empty()) return;
        check(::posix_spawn_file_actions_addopen(&m_actions, descriptor, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                                 0600),
              "posix_spawn_file_actions_addopen");
    }
    [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &m_actions; }

private:
    posix_spawn_file_actions_t m_actions{};
};

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes)
{
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text{*entry};
        if (!changes.contains(std::string(text.substr(0, text.find('='))))) environment.emplace_back(text);
    }
    for (const auto& [name, value] : changes) environment.push_back(name + "=" + value);
    return environment;
}

/// The argument form of exec; points into `strings`.
std::vector<char*> pointers_to(std::vector<std::string>& strings)
{
    std::vector<char*> pointers;
    for (std::string& string : strings) pointers.push_back(string.data());
    pointers.push_back(nullptr);
    return pointers;
}

} // namespace

int run(const Command& command)
{
    FileActions actions;
    actions.redirect(STDOUT_FILENO, command.output);
    actions.redirect(STDERR_FILENO, command.errors);
    std::vector<std::string> arguments{command.program.string()};
    arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
    std::vector<std::string> environment = environment_with(command.environment);

    pid_t child = 0;
    check(::posix_spawn(&child, command.program.c_str(), actions.get(), nullptr, pointers_to(arguments).data(),
                        pointers_to(environment).data()),
          "cannot start '" + command.program.string() + "'");
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) check(errno, "waitpid");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace llm
