// The command `warmgraph`: look at a cache folder, explain misses, check and clear it. docs/command.md describes it.
#include <cstdio>
#include <functional>
#include <map>

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace {

using namespace warmgraph;
using namespace warmgraph::tool;

constexpr const char* k_exit_codes =
    "Exit status:\n"
    "  0  fine\n"
    "  1  something is wrong: damage, a miss, a problem, nothing by that name; or clear was declined\n"
    "  2  the command was used wrongly\n"
    "  3  the cache folder cannot be used";

struct Arguments {
    std::string cache_dir, target, model, function, file;
    bool json = false, dot = false, repair = false, accept_newer_driver = false, dry_run = false, yes = false;
    std::string kind = "entries";
    SigningFiles signing;
    NewKey new_key{.file = {}, .id = {}, .kind = "hmac-sha256"};
};

using Command = std::function<Result<int>(const Context&, const Arguments&)>;

CLI::App* add(CLI::App& app, std::map<const CLI::App*, Command>& commands, const std::string& name,
              const std::string& description, Command command)
{
    CLI::App* sub = app.add_subcommand(name, description);
    sub->fallthrough(); // --json and --cache-dir may also stand behind the subcommand
    commands[sub] = std::move(command);
    return sub;
}

std::optional<std::string> given(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }

const std::map<std::string, store::ClearKind>& clear_kinds()
{
    using store::ClearKind;
    static const std::map<std::string, ClearKind> kinds{{"entries", ClearKind::entries},
                                                        {"images", ClearKind::images},
                                                        {"quarantine", ClearKind::quarantine},
                                                        {"all", ClearKind::all}};
    return kinds;
}

/// An empty name (a script's variable that is not set) would choose everything.
std::string check_given(const std::string& name)
{
    return name.empty() ? "the name is empty: leave the option out" : "";
}

void describe_clear(CLI::App& app, Arguments& arguments, std::map<const CLI::App*, Command>& commands)
{
    CLI::App* clear_app = add(app, commands, "clear", "remove entries", [](const Context& c, const Arguments& a) {
        const Asking asking = a.dry_run ? Asking::dry_run : a.yes ? Asking::never : Asking::on_terminal;
        return clear(c, {given(a.model), given(a.function), clear_kinds().at(a.kind), asking});
    });
    clear_app->add_option("--model", arguments.model, "only this model")->check(check_given);
    clear_app
        ->add_option("--func", arguments.function,
                     "only this function: function, model/function or model/rank/function")
        ->check(check_given);
    clear_app->add_option("--kind", arguments.kind, "entries (default), images (that no entry uses), quarantine, all")
        ->check(CLI::IsMember(clear_kinds()));
    clear_app->add_flag("--dry-run", arguments.dry_run, "say what would be removed, and remove nothing");
    clear_app->add_flag("--yes", arguments.yes, "do not ask on a terminal before everything is removed");
}

void describe_signing(CLI::App& app, Arguments& arguments, std::map<const CLI::App*, Command>& commands)
{
    CLI::App* sign_app =
        add(app, commands, "sign", "sign every entry, or make a key", [](const Context& c, const Arguments& a) {
            return a.new_key.file.empty() ? sign(c, a.signing) : make_key(c, a.new_key);
        });
    CLI::App* verify_app = add(app, commands, "verify", "verify every entry's signature, contents and images",
                               [](const Context& c, const Arguments& a) { return verify(c, a.signing); });
    for (CLI::App* sub : {sign_app, verify_app}) {
        sub->add_option("--key-file", arguments.signing.key,
                        "the key to sign with (default: $WARMGRAPH_SIGN_KEY_FILE)");
        sub->add_option("--accept-file", arguments.signing.accepted,
                        "keys that are accepted, one a line (default: $WARMGRAPH_ACCEPT_KEYS_FILE)");
    }
    CLI::Option* new_key =
        sign_app->add_option("--new-key", arguments.new_key.file, "make a key in this new file instead");
    sign_app->add_option("--id", arguments.new_key.id, "its id: letters, digits, '.', '_', '-'")->needs(new_key);
    sign_app->add_option("--kind", arguments.new_key.kind, "hmac-sha256 (default: one shared secret) or ed25519")
        ->check(CLI::IsMember({"hmac-sha256", "ed25519"}))
        ->needs(new_key);
}

void describe(CLI::App& app, Arguments& arguments, std::map<const CLI::App*, Command>& commands)
{
    app.add_option("--cache-dir", arguments.cache_dir,
                   "cache folder (default: $WARMGRAPH_CACHE_DIR, else .warmgraph_cache)");
    app.add_flag("--json", arguments.json, "one JSON document on standard output");
    app.set_version_flag("--version", "warmgraph " WARMGRAPH_VERSION);
    app.footer(k_exit_codes);
    app.require_subcommand(0, 1); // so that a word that is none is named

    add(app, commands, "ls", "list the cached functions", [](const Context& c, const Arguments&) { return ls(c); });

    CLI::App* show_app =
        add(app, commands, "show", "show a function's entries: guards, bindings, nodes, images",
            [](const Context& c, const Arguments& a) {
                return show(c, a.target, a.dot ? ShowForm::dot : a.json ? ShowForm::json : ShowForm::text);
            });
    show_app->add_option("function", arguments.target, "model/function, model/rank/function, or the path of a .wg file")
        ->required();
    show_app->add_flag("--dot", arguments.dot, "a drawing of the graph for Graphviz");

    CLI::App* explain_app =
        add(app, commands, "explain", "say why a function would miss here", [](const Context& c, const Arguments& a) {
            using guards::VersionRule;
            return explain(c, a.target, {a.accept_newer_driver ? VersionRule::same_or_newer : VersionRule::exact});
        });
    explain_app->add_option("function", arguments.target, "model/function or model/rank/function")->required();
    explain_app->add_flag("--accept-newer-driver", arguments.accept_newer_driver,
                          "judge as CacheOptions::accept_newer_driver does");

    CLI::App* check_app = add(
        app, commands, "check", "read everything and report damage; changes nothing by itself",
        [](const Context& c, const Arguments& a) { return check(c, a.repair ? Mending::repair : Mending::look_only); });
    check_app->add_flag("--repair", arguments.repair, "move what is damaged to quarantine");

    add(app, commands, "stats", "hits, misses and time saved",
        [](const Context& c, const Arguments&) { return stats(c); });

    CLI::App* report_app =
        add(app, commands, "report", "one HTML page: what is cached, hits and misses, start-up times, graphs",
            [](const Context& c, const Arguments& a) { return report(c, given(a.file)); });
    report_app
        ->add_option("-o", arguments.file, "the page's file (default: warmgraph-report.html; with --json: no page)")
        ->check(check_given);

    describe_clear(app, arguments, commands);
    describe_signing(app, arguments, commands);

    add(app, commands, "doctor", "check devices, libraries, cache folder and environment",
        [](const Context& c, const Arguments&) { return doctor(c); });
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"warmgraph: a cache of captured execution", "warmgraph"};
    Arguments arguments;
    std::map<const CLI::App*, Command> commands;
    describe(app, arguments, commands);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? k_ok : k_usage;
    }
    if (app.get_subcommands().empty()) {
        std::fputs("expected a subcommand: ls, show, explain, check, stats, report, clear, sign, verify or doctor\n"
                   "Run with --help for more information.\n",
                   stderr);
        return k_usage;
    }
    const Output output = arguments.json ? Output::json : Output::text;
    try {
        const Context context{resolve_cache_dir(arguments.cache_dir), output, style_of_standard_output(),
                              posix_file_system(), system_clock()};
        const Result<int> status = commands.at(app.get_subcommands().front())(context, arguments);
        return status ? *status : report_failure(output, status.error());
    } catch (const std::exception& error) {
        return report_failure(output, {ErrorCode::internal, error.what()});
    }
}
