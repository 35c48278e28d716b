#include "line/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "line/command_line.hpp"

namespace warmgraph::tool {

namespace {

using Options = std::vector<const CLI::Option*>;

bool takes_value(const CLI::Option& option) { return option.get_expected_min() > 0; }

std::vector<std::string> names_of(const Options& options)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : options) names.push_back(option->get_name());
    names.emplace_back("--help");
    return names;
}

// --- bash

/// A bash command that prints the candidates for a value.
std::string bash_candidates(const CLI::Option& option)
{
    const std::string type = option.get_type_name();
    if (type == k_folder) return R"sh(compgen -d -- "$word")sh";
    if (type == k_file) return R"sh(compgen -f -- "$word")sh";
    if (type == k_function || type == k_name)
        return fmt::format(R"sh(compgen -W "$(_warmgraph_names {})" -- "$word"; compgen -f -X '!*.wg*' -- "$word")sh",
                           type == k_name ? "names" : "functions");
    return fmt::format(R"sh(compgen -W "{}" -- "$word")sh", fmt::join(choices_of(type), " "));
}

std::string bash_case(const std::string& pattern, const std::string& command)
{
    return fmt::format("        {}) mapfile -t COMPREPLY < <({}); return ;;\n", pattern, command);
}

std::string bash_verb(const CLI::App& sub)
{
    const Options options = named_options(sub), places = positionals(sub);
    const std::string words = fmt::format(R"sh(compgen -W "{}" -- "$word")sh", fmt::join(names_of(options), " "));
    std::string text = fmt::format("    {})\n        case $previous in\n", sub.get_name());
    for (const CLI::Option* option : options)
        if (takes_value(*option)) text += bash_case(option->get_name(), bash_candidates(*option));
    text += "        esac\n        case $word in\n" + bash_case("-*", words) + "        esac\n";
    if (places.size() > 1) // for the words after the first positional word
        text += fmt::format("        if [[ $previous != {} ]]; then mapfile -t COMPREPLY < <({}); return; fi\n",
                            sub.get_name(), bash_candidates(*places.back()));
    if (!places.empty())
        text += fmt::format("        mapfile -t COMPREPLY < <({})\n", bash_candidates(*places.front()));
    return text + "        ;;\n";
}

constexpr const char* k_bash_head =
    R"sh(# bash completion of warmgraph. Made by `warmgraph completion bash`: do not change it here.

# The functions (model/function) of the cache that the line names; with "names" their models too.
_warmgraph_names() {
    local i folder=()
    for ((i = 1; i + 1 < ${#COMP_WORDS[@]}; i++)); do
        if [[ ${COMP_WORDS[i]} == --cache-dir ]]; then folder=(--cache-dir "${COMP_WORDS[i + 1]}"); fi
    done
    if [[ $1 == names ]]; then
        "${COMP_WORDS[0]}" names "${folder[@]}" 2>/dev/null
    else
        "${COMP_WORDS[0]}" names "${folder[@]}" 2>/dev/null | grep /
    fi
}

_warmgraph() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb= i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --cache-dir | --color) ((i++)) ;;
        -*) ;;
        *) verb=${COMP_WORDS[i]}; break ;;
        esac
    done
    case $verb in
)sh";

} // namespace

std::string bash_completion()
{
    Arguments unused;
    const auto app = make_app(unused);
    std::vector<std::string> first;
    std::string text = k_bash_head;
    for (const CLI::App* sub : shown_subcommands(*app)) {
        first.push_back(sub->get_name());
        text += bash_verb(*sub);
    }
    text += "    '')\n        case $previous in\n";
    for (const CLI::Option* option : named_options(*app))
        if (takes_value(*option)) text += bash_case(option->get_name(), bash_candidates(*option));
    for (const std::string& name : names_of(named_options(*app))) first.push_back(name);
    first.emplace_back("--version");
    text += fmt::format("        esac\n        mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$word\")\n        ;;\n",
                        fmt::join(first, " "));
    return text + "    esac\n}\n\ncomplete -o filenames -F _warmgraph warmgraph\n";
}

// --- zsh

namespace {

/// Quotes text for single quotes and the brackets of _arguments.
std::string zsh_quoted(const std::string& text)
{
    std::string out;
    for (const char c : text) {
        if (c == '\'') {
            out += R"sh('\'')sh";
            continue;
        }
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_action(const CLI::Option& option)
{
    const std::string type = option.get_type_name();
    if (type == k_folder) return "_files -/";
    if (type == k_file) return "_files";
    if (type == k_function) return "_warmgraph_functions";
    if (type == k_name) return "_warmgraph_names";
    const auto words = choices_of(type);
    return words.empty() ? " " : fmt::format("({})", fmt::join(words, " ")); // a blank: no candidates
}

std::string zsh_specs(const CLI::App& app)
{
    std::string text = " \\\n            '(- *)--help[this help]'";
    for (const CLI::Option* option : named_options(app))
        text += fmt::format(" \\\n            '{}[{}]{}'", option->get_name(), zsh_quoted(option->get_description()),
                            takes_value(*option) ? fmt::format(":value:{}", zsh_action(*option)) : "");
    std::size_t place = 0;
    for (const CLI::Option* option : positionals(app)) {
        const bool is_last_of_many = option->get_expected_max() > 1;
        const std::string number = is_last_of_many ? "*" : std::to_string(++place);
        text += fmt::format(" \\\n            '{}:{}:{}'", number, option->get_name(), zsh_action(*option));
    }
    return text;
}

constexpr const char* k_zsh_head = R"sh(#compdef warmgraph
# zsh completion of warmgraph. Made by `warmgraph completion zsh`: do not change it here.

_warmgraph_call() {
    local -a folder
    (( ${+opt_args[--cache-dir]} )) && folder=(--cache-dir ${(Q)opt_args[--cache-dir]})
    warmgraph names $folder 2>/dev/null
}
_warmgraph_names() { local -a names; names=(${(f)"$(_warmgraph_call)"}); compadd -a names; _files -g '*.wgb' }
_warmgraph_functions() {
    local -a names; names=(${(f)"$(_warmgraph_call)"}); names=(${(M)names:#*/*})
    compadd -a names; _files -g '*.wg'
}

_warmgraph() {
    local line state
    local -A opt_args
    local -a verbs
    verbs=(
)sh";

} // namespace

std::string zsh_completion()
{
    Arguments unused;
    const auto app = make_app(unused);
    std::string text = k_zsh_head;
    for (const CLI::App* sub : shown_subcommands(*app))
        text += fmt::format("        '{}:{}'\n", sub->get_name(), zsh_quoted(sub->get_description()));
    text +=
        "    )\n    _arguments -C" + zsh_specs(*app) +
        " \\\n            '(- *)--version[the version]' \\\n            '1:subcommand:->verb' '*::argument:->rest'\n"
        "    case $state in\n    verb) _describe subcommand verbs ;;\n    rest)\n        case $line[1] in\n";
    for (const CLI::App* sub : shown_subcommands(*app))
        text += fmt::format("        {}) _arguments{} ;;\n", sub->get_name(), zsh_specs(*sub));
    return text + "        esac\n        ;;\n    esac\n}\n\n_warmgraph \"$@\"\n";
}

} // namespace warmgraph::tool
