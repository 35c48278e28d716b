#include "line/manual.hpp"

#include <fmt/format.h>

#include "line/command_line.hpp"

namespace warmgraph::tool {

namespace {

/// Escapes text for roff: no escapes, no request at the beginning of a line, hyphens that can be copied.
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

/// Formats text without line filling, as in the help.
std::string verbatim(const std::string& text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

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
    ".SH FILES\n.TP\n.I .warmgraph_cache\nthe cache folder, where nothing names another one\n";

} // namespace

std::string manual_page()
{
    Arguments unused;
    const auto app = make_app(unused);
    std::string text =
        fmt::format(".TH WARMGRAPH 1 \"\" \"warmgraph {}\" \"User Commands\"\n{}", WARMGRAPH_VERSION, k_head);
    text += ".SH OPTIONS\n" + verbatim(app->help()) + ".SH SUBCOMMANDS\n";
    for (const CLI::App* sub : shown_subcommands(*app))
        text += fmt::format(".SS {}\n{}", sub->get_name(), verbatim(sub->help("warmgraph")));
    return text + k_tail;
}

} // namespace warmgraph::tool
