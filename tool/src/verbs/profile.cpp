// `warmgraph profile`: the sizes that functions were called with, the sizes after padding, and the learnt buckets.
#include <algorithm>

#include "commands.hpp"
#include "selection.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/profile/buckets.hpp"
#include "warmgraph/profile/profile_library.hpp"

namespace warmgraph::tool {

namespace {

struct StoredProfile {
    std::string file; ///< path below the cache folder
    Result<profile::Profile> profile;
};

std::string file_of(const store::ArtifactName& name)
{
    const std::string file = store::file_name(name);
    return fmt::format("{}/{}/{}", store::row_of(name.kind).folder, file.substr(0, 2), file);
}

/// Compares a model or model/function with the profile; nullopt: all. A profile that cannot be read always counts.
bool is_asked_for(const StoredProfile& stored, const std::optional<std::string>& name)
{
    if (!name || !stored.profile) return true;
    const std::size_t slash = name->find('/');
    const std::string model = name->substr(0, slash);
    return is_model(stored.profile->model_info, model) &&
           (slash == std::string::npos || name->substr(slash + 1) == stored.profile->function);
}

Result<std::vector<StoredProfile>> read_all(store::Tier& tier, const std::optional<std::string>& name)
{
    const auto names = tier.list({.kind = store::ArtifactKind::profiles});
    if (!names) return std::unexpected(names.error());
    const profile::ProfileLibrary library(tier);
    std::vector<StoredProfile> all;
    for (const store::Name& each : *names) {
        const auto& artifact = std::get<store::ArtifactName>(each);
        auto found = library.find(artifact.digest);
        if (found && !*found) continue; // removed meanwhile
        StoredProfile stored{file_of(artifact),
                             found ? Result<profile::Profile>{std::move(**found)} : std::unexpected(found.error())};
        if (is_asked_for(stored, name)) all.push_back(std::move(stored));
    }
    return all;
}

/// The buckets learnt for a dimension; empty if none.
std::vector<std::int64_t> learnt_for(const profile::Profile& profile, const profile::Dimension& dimension)
{
    std::pair<std::string, std::vector<std::int64_t>> last;
    for (const auto& [wish, learnt] : profile.learnt)
        if (std::ranges::find(wish.dimensions, dimension) != wish.dimensions.end() && learnt.decided >= last.first)
            last = {learnt.decided, learnt.buckets};
    return last.second;
}

Json sizes_json(const profile::Histogram& sizes)
{
    Json list = Json::array();
    for (const auto& [size, calls] : sizes) list.push_back({{"size", size}, {"calls", calls}});
    return list;
}

Json learnt_json(const profile::Profile& profile)
{
    Json list = Json::array();
    for (const auto& [wish, learnt] : profile.learnt) {
        Json dimensions = Json::array();
        for (const auto& dimension : wish.dimensions) dimensions.push_back(to_text(dimension));
        list.push_back({{"dimensions", dimensions},
                        {"most", wish.most},
                        {"multiple_of", wish.multiple_of},
                        {"buckets", learnt.buckets},
                        {"decided", learnt.decided}});
    }
    return list;
}

std::uint64_t total_of(const profile::Profile& profile)
{
    std::uint64_t calls = 0;
    for (const auto& [writer, part] : profile.parts) calls += part.total;
    return calls;
}

Json to_json(const StoredProfile& stored)
{
    if (!stored.profile) return {{"file", stored.file}, {"problem", stored.profile.error().message}};
    const profile::Profile& profile = *stored.profile;
    const auto calls = profile::total(profile);
    Json dimensions = Json::array();
    for (const auto& seen : profile::dimensions_of(calls))
        dimensions.push_back({{"argument", seen.dimension.argument},
                              {"dimension", seen.dimension.index},
                              {"varies", seen.varies()},
                              {"sizes", sizes_json(seen.sizes)},
                              {"ran", sizes_json(profile::ran_with(calls, seen.dimension))},
                              {"padding", profile::padding_of(calls, seen.dimension).share()}});
    return {{"file", stored.file},
            {"model", cachefmt::model_of(profile.model_info)},
            {"model_info", profile.model_info},
            {"function", profile.function},
            {"writers", profile.parts.size()},
            {"calls", total_of(profile)},
            {"shapes", calls.size()},
            {"dimensions", dimensions},
            {"learnt", learnt_json(profile)},
            {"problem", Json()}};
}

std::string buckets_text(const profile::Profile& profile, const profile::Calls& calls,
                         const profile::Dimension& dimension)
{
    std::string text;
    const auto ran = profile::ran_with(calls, dimension);
    for (const std::int64_t bucket : learnt_for(profile, dimension)) {
        const auto hit = ran.find(bucket);
        text +=
            fmt::format("{}{} ({})", text.empty() ? "" : ", ", bucket, count_text(hit != ran.end() ? hit->second : 0));
    }
    return text.empty() ? "-" : text;
}

std::string to_text(const Context& context, const std::vector<StoredProfile>& all)
{
    using enum Table::Align;
    Table table({{"model"},
                 {"function"},
                 {"dimension"},
                 {"calls", right},
                 {"sizes", right},
                 {"least", right},
                 {"most", right},
                 {"padding", right},
                 {"buckets (calls)"}});
    std::string files;
    for (const StoredProfile& stored : all) {
        if (!stored.profile) {
            files += fmt::format("{}: {}\n", stored.file, printable(stored.profile.error().message, 400));
            continue;
        }
        files += stored.file + "\n";
        const auto calls = profile::total(*stored.profile);
        for (const auto& seen : profile::dimensions_of(calls)) {
            std::uint64_t count = 0;
            for (const auto& [size, number] : seen.sizes) count += number;
            const auto padding = profile::padding_of(calls, seen.dimension);
            table.add({std::string(cachefmt::model_of(stored.profile->model_info)), stored.profile->function,
                       to_text(seen.dimension), count_text(count), count_text(seen.sizes.size()),
                       std::to_string(seen.sizes.begin()->first), std::to_string(seen.sizes.rbegin()->first),
                       padding.asked > 0 ? fmt::format("{:.0f} %", 100 * padding.share()) : "-",
                       buckets_text(*stored.profile, calls, seen.dimension)});
        }
    }
    return (all.empty() ? "" : table.text(context.style)) + plural(all.size(), "shape profile") + "\n" + files;
}

} // namespace

Result<int> profile(const Context& context, const std::optional<std::string>& name)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto all = *store ? read_all((*store)->tier(), name) : std::vector<StoredProfile>{};
    if (!all) return std::unexpected(all.error());
    if (context.output == Output::json) {
        Json profiles = Json::array();
        for (const StoredProfile& stored : *all) profiles.push_back(to_json(stored));
        print(Json{{"cache_dir", context.cache_dir.string()}, {"profiles", profiles}});
    } else {
        print(*store ? to_text(context, *all) : no_folder_text(context) + "\n");
    }
    const bool is_damaged = std::ranges::any_of(*all, [](const StoredProfile& one) { return !one.profile; });
    return is_damaged || (name && all->empty()) ? k_found_wrong : k_ok;
}

} // namespace warmgraph::tool
