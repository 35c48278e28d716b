// `warmgraph bundle ls`, `show` and `diff`: display a bundle's contents.
#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "verbs/bundle/actions.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/fact_lists.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::tool {

namespace {

using bundle::Bundle;
using bundle::Member;

std::map<store::ArtifactKind, bundle::Amount> amounts_of(const Bundle& opened)
{
    std::map<store::ArtifactKind, bundle::Amount> amounts;
    for (const Member& member : opened.members()) {
        ++amounts[member.kind].count;
        amounts[member.kind].bytes += member.object_size();
    }
    return amounts;
}

std::string amounts_text(const Bundle& opened)
{
    std::string text;
    for (const auto& [kind, amount] : amounts_of(opened))
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", counted_kind(kind, amount.count),
                            size_text(amount.bytes));
    return text;
}

Json member_json(const Member& member)
{
    return {{"kind", bundle::name_of(member.kind)},
            {"name", member.name},
            {"bytes", member.object_size()},
            {"stored", member.stored + member.head.size()}};
}

Json other_json(const Member& member, const Result<std::string>& what)
{
    Json other = member_json(member);
    other["error"] = what ? Json() : Json(what.error().message);
    other["what"] = what ? Json(*what) : Json();
    return other;
}

Json facts_json(const cachefmt::Guards& guards)
{
    Json facts = Json::object();
    for (const auto& fact : cachefmt::each_fact(guards.facts)) facts[fact.name] = cachefmt::fact_text(fact.value);
    return facts;
}

std::string facts_lines(const cachefmt::EntryHeader& header)
{
    std::string text = fmt::format("  recorded {}, {}, saves {}\n", header.info.created, header.info.created_by,
                                   time_text(header.info.answer_ms));
    for (const auto& fact : cachefmt::each_fact(header.guards.facts))
        text += fmt::format("  {} = {}\n", fact.name, cachefmt::fact_text(fact.value));
    for (const auto& tensor : header.guards.tensors)
        text += fmt::format("  {} {} [{}] on {}\n", tensor.name, to_string(tensor.dtype), fmt::join(tensor.sizes, ", "),
                            tensor.device);
    return text;
}

/// A PyTorch artifact for `show`, from its label.
struct TorchText {
    Json json;
    std::string text;
    bool is_whole = false;
};

TorchText torch_text(const Bundle& opened, const Member& member)
{
    const auto bytes = opened.content(member);
    const auto label = bytes ? store::inspect_torch(*bytes) : std::unexpected(bytes.error());
    TorchText shown{member_json(member), member_text(member) + "\n", label.has_value()};
    shown.json["error"] = label ? Json() : Json(label.error().message);
    shown.json["facts"] = label ? Json(label->facts) : Json::object();
    if (!label) {
        shown.text += "  " + label.error().message + "\n";
        return shown;
    }
    shown.text += fmt::format("  {} of PyTorch's artifacts, written {}, signed with '{}'\n", size_text(label->size),
                              label->written, label->key_id);
    for (const auto& [name, value] : label->facts) shown.text += fmt::format("  {} = {}\n", name, value);
    return shown;
}

/// Makes text safe for a terminal.
std::string safe(const std::string& text) { return printable_lines(text, 400); }

/// Compares the uncompressed contents. A damaged member equals no other.
bool are_same(const Bundle& first, const Member& member, const Bundle& second, const Member& other)
{
    if (!std::ranges::equal(member.head, other.head)) return false;
    if (member.digest == other.digest) return true;
    const auto mine = first.content(member), its = second.content(other);
    return mine && its && *mine == *its;
}

} // namespace

std::string signed_text(const Bundle& opened)
{
    if (opened.key_id().empty()) return "not signed";
    return fmt::format("signed with '{}'{}", opened.key_id(),
                       opened.signed_by().empty() ? ", which is not accepted here" : "");
}

Json bundle_json(const std::string& file, const Bundle& opened)
{
    return {{"file", file},
            {"format", bundle::k_bundle_version},
            {"bytes", opened.size()},
            {"created", opened.created()},
            {"created_by", opened.created_by()},
            {"key_id", opened.key_id().empty() ? Json() : Json(opened.key_id())},
            {"signed_by", opened.signed_by().empty() ? Json() : Json(opened.signed_by())}};
}

Result<int> bundle_ls(const Context& context, const BundleOptions& options)
{
    const auto opened = open_to_inspect(options.files.front(), options);
    if (!opened) return std::unexpected(opened.error());
    if (context.output == Output::json) {
        Json document = bundle_json(options.files.front(), **opened);
        document["members"] = Json::array();
        for (const Member& member : (*opened)->members()) document["members"].push_back(member_json(member));
        print(document);
        return k_ok;
    }
    using enum Table::Align;
    Table table({{"kind"}, {"name"}, {"size", right}, {"stored", right}}, 0, 160);
    for (const Member& member : (*opened)->members())
        table.add({bundle::name_of(member.kind), member_text(member), size_text(member.object_size()),
                   size_text(member.stored + member.head.size())});
    print(table.text(context.style) +
          fmt::format("{}; {}, {}\n", amounts_text(**opened), size_text((*opened)->size()), signed_text(**opened)));
    return k_ok;
}

Result<int> bundle_show(const Context& context, const BundleOptions& options)
{
    const auto opened = open_to_inspect(options.files.front(), options);
    if (!opened) return std::unexpected(opened.error());
    const auto selection = BundleSelection::of(options);
    if (!selection) return std::unexpected(selection.error());
    Json entries = Json::array(), others = Json::array();
    std::string text = safe(fmt::format("{}: made {} by {}, {}\n{}\n", options.files.front(), (*opened)->created(),
                                        (*opened)->created_by(), signed_text(**opened), amounts_text(**opened)));
    int status = k_ok;
    for (const Member& member : (*opened)->members()) {
        if (store::is_blob(member.kind)) continue;
        if (member.kind == store::ArtifactKind::torch) {
            if (!selection->chooses(member.kind)) continue;
            TorchText artifacts = torch_text(**opened, member);
            if (!artifacts.is_whole) status = k_found_wrong;
            entries.push_back(std::move(artifacts.json));
            text += "\n" + safe(artifacts.text);
            continue;
        }
        if (member.kind != store::ArtifactKind::entries) {
            if (selection->why_not(**opened, member) == "not chosen") continue;
            const auto what = bundle::describe_artifact(**opened, member);
            if (!what) status = k_found_wrong;
            others.push_back(other_json(member, what));
            text += "\n" + safe(member_text(member) + "\n  " + (what ? *what : what.error().message) + "\n");
            continue;
        }
        const auto header = (*opened)->header(member);
        if (header && !selection->chooses(header->key.function)) continue;
        if (!header) status = k_found_wrong;
        Json entry = member_json(member);
        entry["error"] = header ? Json() : Json(header.error().message);
        entry["facts"] = header ? facts_json(header->guards) : Json::object();
        entries.push_back(std::move(entry));
        text += "\n" + safe(member_text(member) + "\n" +
                            (header ? facts_lines(*header) : "  " + header.error().message + "\n"));
    }
    if (context.output == Output::json) {
        Json document = bundle_json(options.files.front(), **opened);
        document["entries"] = entries;
        document["others"] = others;
        print(document);
    } else {
        print(text);
    }
    return status;
}

Result<int> bundle_diff(const Context& context, const BundleOptions& options)
{
    const auto first = open_to_inspect(options.files[0], options), second = open_to_inspect(options.files[1], options);
    if (!first) return std::unexpected(first.error());
    if (!second) return std::unexpected(second.error());
    Json differences = Json::array();
    Table table({{"member"}, {"difference"}}, 0, 160);
    const auto tell = [&](const Member& member, const std::string& where) {
        differences.push_back({{"name", member.name}, {"difference", where}});
        table.add({member_text(member), where});
    };
    for (const Member& member : (*first)->members()) {
        const Member* const other = (*second)->find(member.name);
        if (other == nullptr) tell(member, "only in the first");
        // Blobs with one name are equal: the name is the digest.
        else if (!store::is_blob(member.kind) && !are_same(**first, member, **second, *other))
            tell(member, member.kind == store::ArtifactKind::entries ? "recorded apart" : "made apart");
    }
    for (const Member& member : (*second)->members())
        if ((*first)->find(member.name) == nullptr) tell(member, "only in the second");
    if (context.output == Output::json)
        print(Json{{"first", options.files[0]}, {"second", options.files[1]}, {"differences", differences}});
    else
        print(differences.empty() ? std::string("both hold the same\n") : table.text(context.style));
    return differences.empty() ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
