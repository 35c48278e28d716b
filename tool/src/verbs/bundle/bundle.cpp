// `warmgraph bundle`: a cache in one file. docs/bundles.md.
#include <algorithm>
#include <array>
#include <cstdio>

#include <unistd.h>

#include "selection.hpp"
#include "verbs/bundle/actions.hpp"
#include "warmgraph/profile/profile_file.hpp"

namespace warmgraph::tool {

namespace {

struct ActionRow {
    std::string_view name;
    std::size_t least_files, most_files;
    std::string_view files; ///< the files that the action takes, for the message
    BundleAction run;
};

constexpr std::size_t k_many = 1000;

constexpr std::array<ActionRow, 8> k_actions{{
    {"create", 1, 1, "the file to make", bundle_create},
    {"load", 1, 1, "the bundle", bundle_load},
    {"ls", 1, 1, "the bundle", bundle_ls},
    {"show", 1, 1, "the bundle", bundle_show},
    {"check", 1, 1, "the bundle", bundle_check},
    {"merge", 2, k_many, "the file to make, and the bundles that go into it", bundle_merge},
    {"diff", 2, 2, "two bundles", bundle_diff},
    {"strip", 2, 2, "the bundle, and the file to make", bundle_strip},
}};

} // namespace

Result<int> bundle(const Context& context, const BundleOptions& options)
{
    const auto row = std::ranges::find(k_actions, options.action, &ActionRow::name);
    if (row == k_actions.end())
        return fail(ErrorCode::invalid_argument, "'{}' is not an action of bundle", options.action);
    if (options.files.size() < row->least_files || options.files.size() > row->most_files)
        return fail(ErrorCode::invalid_argument, "bundle {} takes {}: {} files are given", row->name, row->files,
                    options.files.size());
    return row->run(context, options);
}

Result<std::unique_ptr<bundle::Bundle>> open_to_inspect(const std::string& file, const BundleOptions& options)
{
    const auto trust = trust_of(options.keys);
    if (!trust) return std::unexpected(trust.error());
    auto source = bundle::open_file(file, bundle::Ownership::anybody, {}, bundle::Streams::spooled);
    if (!source) return std::unexpected(source.error());
    auto opened = bundle::Bundle::open(std::move(*source), *trust);
    if (!opened) return within(file, opened.error());
    return opened;
}

Result<BundleSelection> BundleSelection::of(const BundleOptions& options)
{
    auto request = request_of(options.model, options.function);
    if (!request) return std::unexpected(request.error());
    BundleSelection selection;
    selection.m_request = std::move(*request);
    for (const std::string& name : options.kinds) {
        const auto kind = store::parse_kind("--kind", name, store::KindUse::bundled);
        if (!kind) return std::unexpected(kind.error());
        selection.m_kinds.insert(*kind);
    }
    return selection;
}

bool BundleSelection::chooses(store::ArtifactKind kind) const
{
    if (!m_kinds.empty()) return m_kinds.contains(kind);
    const bool is_of_function = kind == store::ArtifactKind::entries || kind == store::ArtifactKind::profiles;
    return is_of_function || !m_request.function;
}

bool BundleSelection::chooses(const profile::Profile& profile) const
{
    return chooses(store::ArtifactKind::profiles) &&
           (!m_request.model || is_model(profile.model_info, *m_request.model)) &&
           (!m_request.function || profile.function == *m_request.function);
}

std::string BundleSelection::why_not(const bundle::Bundle& opened, const bundle::Member& member) const
{
    bool is_chosen = chooses(member.kind);
    if (is_chosen && member.kind == store::ArtifactKind::profiles && !is_all()) {
        const auto bytes = opened.content(member);
        if (!bytes) return bytes.error().message;
        const auto profile = profile::decode(*bytes);
        if (!profile) return profile.error().message;
        is_chosen = chooses(*profile);
    }
    return is_chosen ? "" : "not chosen";
}

bool BundleSelection::chooses(const cachefmt::FunctionKey& key) const
{
    return chooses(store::ArtifactKind::entries) && (!m_request.model || is_model(key.model_info, *m_request.model)) &&
           (!m_request.rank || key.rank == *m_request.rank) &&
           (!m_request.function || key.function == *m_request.function);
}

Result<void> BundleSelection::check_fits(const std::vector<cachefmt::FunctionKey>& functions) const
{
    if (is_all() || std::ranges::any_of(functions, [&](const auto& key) { return chooses(key); })) return {};
    std::string there_are;
    for (const auto& key : functions) there_are += "\n  " + full_name(key);
    return fail(ErrorCode::not_found, "no function matches the names{}",
                there_are.empty() ? "" : "; there are:" + there_are);
}

std::string member_text(const bundle::Member& member)
{
    const auto name = bundle::tier_name(member.kind, member.name);
    const auto* const key = name ? std::get_if<store::EntryKey>(&*name) : nullptr;
    if (key == nullptr) return std::string(member.name);
    return fmt::format("{}/{}/{} {}", cachefmt::model_of(key->function.model_info), key->function.rank,
                       key->function.function, short_hex(key->guards_digest));
}

std::string counted_kind(store::ArtifactKind kind, std::uint64_t count)
{
    const store::KindRow* const row = store::find_row(kind);
    return plural(count, row != nullptr ? std::string(row->noun) : bundle::name_of(kind));
}

bundle::Progress progress_line(const Context& context, std::string doing)
{
    if (context.output == Output::json || !takes_escapes(STDERR_FILENO)) return {};
    return [doing = std::move(doing)](std::uint64_t done, std::uint64_t total) {
        std::fputs(fmt::format("\r{} {} of {}{}", doing, done, total, done == total ? "\n" : "").c_str(), stderr);
        std::fflush(stderr);
    };
}

namespace {

Json list_of(const std::vector<bundle::UnmovedArtifact>& left)
{
    Json list = Json::array();
    for (const auto& [name, why] : left) list.push_back({{"name", name}, {"why", why}});
    return list;
}

} // namespace

void report_transfer(const Context& context, std::string_view done, const std::string& file,
                     const bundle::Transfer& transfer)
{
    if (context.output == Output::json) {
        Json kinds = Json::array();
        for (const auto& [kind, amount] : transfer.moved)
            kinds.push_back({{"kind", bundle::name_of(kind)},
                             {"count", amount.count},
                             {"bytes", amount.bytes},
                             {"seconds", amount.seconds},
                             {"names", amount.names}});
        return print(Json{{"file", file},
                          {std::string(done), kinds},
                          {"there", list_of(transfer.there)},
                          {"skipped", list_of(transfer.skipped)}});
    }
    std::string text;
    for (const auto& [kind, amount] : transfer.moved)
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", counted_kind(kind, amount.count),
                            size_text(amount.bytes));
    text = fmt::format("{}: {} {}\n", path_text(file), done, text.empty() ? "nothing" : text);
    if (!transfer.there.empty())
        text += fmt::format("{} already in the cache, and not changed\n", plural(transfer.there.size(), "object"));
    if (!transfer.skipped.empty()) {
        constexpr std::size_t k_most = 200;
        Table table({{"skipped"}, {"why"}}, 0, k_most);
        for (const auto& [name, why] : transfer.skipped) table.add({name, why});
        text += table.text(context.style);
    }
    print(text);
}

} // namespace warmgraph::tool
