#include "line/manual.hpp"

#include <fmt/format.h>

#include "line/command_line.hpp"

namespace warmgraph::tool {

namespace {

/// Text for roff: no escapes, no request at the beginning of a line, hyphens that can be copied.
std::string roff(const std::string& text)
{
    std::string out;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

std::string option_entry(const CLI::Option& option)
{
    const std::string value =
        option.get_expected_min() > 0 ? fmt::format(" \\fI{}\\fR", roff(option.get_type_name())) : "";
    return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(option.get_name()), value, roff(option.get_description()));
}

std::string positional_entry(const CLI::Option& option)
{
    return fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(option.get_name()), roff(option.get_description()));
}

std::string subcommand_entry(const CLI::App& sub, const Verb& verb, std::size_t common)
{
    std::string line = fmt::format("\\fBwarmgraph {}\\fR", roff(sub.get_name()));
    for (const CLI::Option* place : positionals(sub))
        line += place->get_required() ? fmt::format(" \\fI{}\\fR", place->get_name())
                                      : fmt::format(" [\\fI{}\\fR]", place->get_name());
    auto options = named_options(sub);
    options.resize(options.size() - common); // those of every subcommand have a section of their own
    if (!options.empty()) line += " [options]";
    std::string text = fmt::format(".SS {}\n{}\n.PP\n{}.\n", roff(sub.get_name()), line, roff(sub.get_description()));
    for (const CLI::Option* place : positionals(sub)) text += positional_entry(*place);
    for (const CLI::Option* option : options) text += option_entry(*option);
    text += ".PP\nExample:\n.PP\n.RS 4\n.nf\n";
    for (const std::string& example : verb.examples) text += roff(example) + "\n";
    return text + ".fi\n.RE\n";
}

constexpr const char* k_head =
    ".SH NAME\nwarmgraph \\- look at a cache of captured execution, explain its misses, check and clear it\n"
    ".SH SYNOPSIS\n.B warmgraph\n[\\fB\\-\\-cache\\-dir\\fR \\fIFOLDER\\fR] [\\fB\\-\\-json\\fR] \\fIsubcommand\\fR "
    "[\\fIarguments\\fR]\n"
    ".SH DESCRIPTION\nA program that uses the library warmgraph records a function that launches accelerator work "
    "once, and "
    "replays it in every later process. What it recorded lies in a cache folder. This command looks at that folder.\n";

constexpr const char* k_tail =
    ".SH ENVIRONMENT\n"
    ".TP\n.B WARMGRAPH_CACHE_DIR\nthe cache folder, where \\fB\\-\\-cache\\-dir\\fR is not given\n"
    ".TP\n.B NO_COLOR\nno colours, where it is set to anything\n"
    ".TP\n.B TERM\nno colours and no progress where it is not set, or dumb\n"
    ".SH FILES\n.TP\n.I .warmgraph_cache\nthe cache folder, where nothing names another one\n"
    ".SH EXIT STATUS\n"
    ".TP\n0\nfine\n"
    ".TP\n1\nsomething is wrong: damage, a miss, a problem, nothing by that name; or clear was declined\n"
    ".TP\n2\nthe command was used wrongly\n"
    ".TP\n3\nthe cache folder cannot be used\n";

} // namespace

std::string manual_page()
{
    Arguments unused;
    const auto app = make_app(unused);
    const auto common = named_options(*app);
    std::string text =
        fmt::format(".TH WARMGRAPH 1 \"\" \"warmgraph {}\" \"User Commands\"\n{}", WARMGRAPH_VERSION, k_head);
    text += ".SH OPTIONS\nThey may stand before and behind the subcommand.\n";
    for (const CLI::Option* option : common) text += option_entry(*option);
    text += ".SH SUBCOMMANDS\n";
    for (const Verb& verb : verbs())
        if (!verb.is_hidden) text += subcommand_entry(*app->get_subcommand(verb.name), verb, common.size());
    return text + k_tail;
}

} // namespace warmgraph::tool
