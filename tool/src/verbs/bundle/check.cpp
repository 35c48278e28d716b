// `warmgraph bundle check`: finds the entries that fit this machine, from header and index alone.
#include "verbs/bundle/actions.hpp"
#include "verbs/environment.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/bundle/compatibility.hpp"

namespace warmgraph::tool {

namespace {

using bundle::Compatibility;
using bundle::Verdict;

struct CheckedEntry {
    const bundle::Member* member = nullptr;
    Compatibility fit{};
    std::string error{}; ///< why the entry cannot be read or is not trusted
};

struct BundleReport {
    std::vector<const bundle::Member*> of_torch{}; ///< members that only PyTorch can judge
    std::vector<CheckedEntry> entries{};
    std::vector<cachefmt::EntryHeader> headers{};
    std::uint64_t fitting = 0;
    std::vector<CheckedEntry> others{}; ///< compiled programs, tuned configurations, profiles
    std::uint64_t others_fitting = 0;
    [[nodiscard]] bool all_fit() const { return fitting == entries.size() && others_fitting == others.size(); }
};

void check_other(const bundle::Bundle& opened, const bundle::Member& member, ThisMachine& machine,
                 BundleReport& checked)
{
    const auto fit = bundle::judge_artifact(opened, member, device_of(machine));
    if (!fit) {
        checked.others.push_back(
            {&member, {Verdict::does_not, std::string(to_string(fit.error().code)), ""}, fit.error().message});
        return;
    }
    checked.others_fitting += fit->verdict == Verdict::fits ? 1 : 0;
    checked.others.push_back({&member, *fit, {}});
}

BundleReport check_entries(const bundle::Bundle& opened, const BundleSelection& selection,
                           const guards::Relaxation& relaxation, ThisMachine& machine)
{
    BundleReport checked;
    for (const bundle::Member& member : opened.members()) {
        if (store::is_blob(member.kind)) continue; // part of an entry
        if (member.kind == store::ArtifactKind::torch) {
            if (selection.chooses(member.kind)) checked.of_torch.push_back(&member);
            continue;
        }
        if (member.kind != store::ArtifactKind::entries) {
            if (selection.why_not(opened, member) != "not chosen") check_other(opened, member, machine, checked);
            continue;
        }
        auto header = opened.header(member);
        if (!header) {
            checked.entries.push_back({&member,
                                       {Verdict::does_not, std::string(to_string(header.error().code)), ""},
                                       header.error().message});
            continue;
        }
        if (!selection.chooses(header->key.function)) continue;
        Compatibility fit = bundle::judge(header->guards, machine.facts_for(header->guards), relaxation);
        checked.fitting += fit.verdict == Verdict::fits ? 1 : 0;
        checked.entries.push_back({&member, std::move(fit), {}});
        checked.headers.push_back(std::move(*header));
    }
    return checked;
}

/// Compares the environment that all entries share with this machine's environment. If it differs, no entry of the
/// bundle fits.
struct EnvironmentLine {
    std::string recorded, text;
    Compatibility fit{};
    std::vector<EnvironmentVerdict> judged{};
};

EnvironmentLine environment_line(const BundleReport& checked, const guards::Relaxation& relaxation,
                                 ThisMachine& machine)
{
    EnvironmentLine line;
    if (checked.headers.empty()) return line;
    cachefmt::Guards shared;
    shared.facts = bundle::shared_environment(checked.headers);
    line.recorded = bundle::environment_text(shared.facts);
    Environments environments;
    for (const cachefmt::EntryHeader& header : checked.headers) environments.add(header.guards);
    line.judged = environments.judge(machine);
    line.fit = bundle::judge(shared, machine.facts_for(checked.headers.front().guards), relaxation);
    line.text = line.fit.verdict == Verdict::fits ? "as here" : line.fit.detail;
    return line;
}

/// Describes a PyTorch artifact: its facts are in the member, which is not read here, and only PyTorch understands
/// them.
std::string torch_detail(const bundle::Bundle& opened)
{
    if (!opened.signed_by().empty()) return "only PyTorch can tell: `bundle show` has its versions";
    return opened.key_id().empty() ? "not used: the bundle is not signed"
                                   : "not used: the key that signed the bundle is not accepted";
}

std::string verdict_word(Verdict verdict)
{
    return verdict == Verdict::fits ? "fits" : verdict == Verdict::fits_after ? "fits_after" : "does_not";
}

Json to_json(const std::vector<CheckedEntry>& checked)
{
    Json entries = Json::array();
    for (const CheckedEntry& entry : checked)
        entries.push_back({{"name", entry.member->name},
                           {"verdict", verdict_word(entry.fit.verdict)},
                           {"field", entry.fit.field.empty() ? Json() : Json(entry.fit.field)},
                           {"detail", entry.error.empty() ? entry.fit.detail : entry.error}});
    return entries;
}

Json to_json(const std::string& file, const bundle::Bundle& opened, const BundleReport& checked,
             const EnvironmentLine& environment, const ThisMachine& machine)
{
    Json of_torch = Json::array();
    for (const bundle::Member* const member : checked.of_torch)
        of_torch.push_back({{"name", member->name}, {"detail", torch_detail(opened)}});
    Json problems = Json::object();
    for (const auto& [device, problem] : machine.problems()) problems[device] = problem;
    return {{"file", file},
            {"environment",
             {{"recorded", environment.recorded},
              {"verdict", verdict_word(environment.fit.verdict)},
              {"detail", environment.text}}},
            {"environments", to_json(environment.judged)},
            {"entries", to_json(checked.entries)},
            {"torch", of_torch},
            {"fitting", checked.fitting},
            {"others", to_json(checked.others)},
            {"others_fitting", checked.others_fitting},
            {"device_problems", problems}};
}

std::string table_text(const Context& context, const char* what, const std::vector<CheckedEntry>& checked)
{
    if (checked.empty()) return {};
    Table table({{what}, {"verdict"}, {"detail"}}, 0, 240);
    for (const CheckedEntry& entry : checked)
        table.add({member_text(*entry.member), bundle::to_text(entry.fit),
                   entry.error.empty() ? entry.fit.detail : entry.error});
    return table.text(context.style);
}

} // namespace

Result<int> bundle_check(const Context& context, const BundleOptions& options)
{
    const auto opened = open_to_inspect(options.files.front(), options);
    if (!opened) return std::unexpected(opened.error());
    const auto selection = BundleSelection::of(options);
    if (!selection) return std::unexpected(selection.error());
    ThisMachine machine;
    const BundleReport checked = check_entries(**opened, *selection, options.relaxation, machine);
    const auto environment = environment_line(checked, options.relaxation, machine);
    const int status = checked.all_fit() ? k_ok : k_found_wrong;
    if (context.output == Output::json) {
        print(to_json(options.files.front(), **opened, checked, environment, machine));
        return status;
    }
    std::string text = environment_line(environment.judged, options.relaxation);
    if (!text.empty()) text += "\n";
    text += fmt::format("environment: {}\n",
                        environment.recorded.empty() ? "the entries have no fact in common" : environment.recorded);
    for (const auto& [device, problem] : machine.problems())
        text += fmt::format("{}: {}\n", printable(device), printable(problem));
    text += table_text(context, "entry", checked.entries) + table_text(context, "other object", checked.others);
    for (const bundle::Member* const member : checked.of_torch)
        text += fmt::format("{}: {}\n", member_text(*member), torch_detail(**opened));
    if (!checked.entries.empty() || checked.others.empty())
        text += fmt::format("{} of {} fit\n", checked.fitting, plural(checked.entries.size(), "entry"));
    if (!checked.others.empty())
        text += fmt::format("{} of {} fit\n", checked.others_fitting, plural(checked.others.size(), "other object"));
    print(text);
    return status;
}

} // namespace warmgraph::tool
