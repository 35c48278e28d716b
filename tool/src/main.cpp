// The command `warmgraph`: shows a cache folder, explains misses, checks and clears it. docs/command.md describes it.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "line/command_line.hpp"
#include "warmgraph/base/cache_folder.hpp"

namespace {

using namespace warmgraph;
using namespace warmgraph::tool;

int no_subcommand(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::App* sub : shown_subcommands(app)) names.push_back(sub->get_name());
    const std::string last = names.back();
    names.pop_back();
    std::fputs(
        fmt::format("expected a subcommand: {} or {}\n`warmgraph --help` says more\n", fmt::join(names, ", "), last)
            .c_str(),
        stderr);
    return k_usage;
}

int run(const CLI::App& chosen, const Arguments& arguments)
{
    const auto verb = std::ranges::find(verbs(), chosen.get_name(), &Verb::name);
    const Output output = arguments.json ? Output::json : Output::text;
    try {
        const Context context{cache_folder(arguments.cache_dir), output, style_of(arguments.color), posix_file_system(),
                              system_clock()};
        const Result<int> status = verb->run(context, arguments);
        return status ? *status : report_failure(output, status.error());
    } catch (const std::exception& error) {
        return report_failure(output, {ErrorCode::internal, error.what()});
    }
}

/// Returns `status`, or an error when the output was not written. A closed pipe is not reported.
int flushed(int status)
{
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    if (errno == EPIPE) return status;
    std::fputs(fmt::format("warmgraph: the output could not be written{}\n",
                           errno != 0 ? fmt::format(": {}", std::strerror(errno)) : "")
                   .c_str(),
               stderr);
    return k_no_cache;
}

} // namespace

int main(int argc, char** argv)
{
    Arguments arguments;
    const auto app = make_app(arguments);
    try {
        app->parse(argc, argv);
    } catch (const CLI::Success& help) {
        app->exit(help);
        std::cout.flush(); // CLI11 writes there
        return flushed(k_ok);
    } catch (const CLI::ParseError& error) {
        std::fputs(usage_text(*app, error).c_str(), stderr);
        return k_usage;
    }
    if (app->get_subcommands().empty()) return no_subcommand(*app);
    return flushed(run(*app->get_subcommands().front(), arguments));
}
