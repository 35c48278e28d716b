// `warmgraph check`: reads every file of the cache folder.
#include <algorithm>

#include "commands.hpp"
#include "selection.hpp"
#include "warmgraph/bundle/kinds.hpp"

namespace warmgraph::tool {

namespace {

std::string to_text(const Context& context, const std::string& what, const std::vector<store::Damage>& damages,
                    Mending mending, std::uint64_t left)
{
    if (damages.empty()) return fmt::format("{}: no damage found\n", what);
    constexpr std::size_t k_most = 400; // an entry's path ends with its digest
    Table table({{"path"}, {"what"}, {"why"}}, 0, k_most);
    for (const store::Damage& damage : damages)
        table.add({damage.path.string(), std::string(to_string(damage.error.code)), damage.error.message});
    std::string text = table.text(context.style) + plural(damages.size(), "file") + " with something wrong";
    if (mending == Mending::look_only) return text + "; nothing was changed: repair with `warmgraph check --repair`\n";
    return text + (left == 0 ? "; repaired\n" : fmt::format("; repaired but for {}\n", plural(left, "file")));
}

Json to_json(const Context& context, const std::vector<store::Damage>& damages, Mending mending, std::uint64_t left)
{
    Json list = Json::array();
    for (const store::Damage& damage : damages)
        list.push_back({{"path", damage.path.string()},
                        {"code", to_string(damage.error.code)},
                        {"message", damage.error.message}});
    return {{"cache_dir", context.cache_dir.string()},
            {"damage", list},
            {"repair", mending == Mending::repair},
            {"left", left}};
}

/// What lies in the folder of one of these functions.
void keep_only(std::vector<store::Damage>& damages, const std::vector<cachefmt::FunctionKey>& functions)
{
    std::erase_if(damages, [&](const store::Damage& damage) {
        return std::ranges::none_of(functions, [&](const cachefmt::FunctionKey& key) {
            return damage.path.parent_path() == std::filesystem::path(key.model_info) / key.rank / key.function;
        });
    });
}

} // namespace

Result<int> check(const Context& context, const std::optional<std::string>& name, Mending mending)
{
    const bool repairs = mending == Mending::repair;
    if (repairs && name)
        return fail(ErrorCode::invalid_argument, "--repair mends the whole folder: leave the name out");
    const auto store = open_store(context, repairs ? store::StoreMode::read_write : store::StoreMode::read_only);
    if (!store) return std::unexpected(store.error());
    const auto functions = choose(context, store->get(), name);
    if (!functions) return std::unexpected(functions.error());
    std::vector<store::Damage> damages;
    std::uint64_t left = 0;
    if (*store) {
        auto found = repairs ? (*store)->repair(bundle::verify_artifact) : (*store)->check(bundle::verify_artifact);
        if (!found) return std::unexpected(found.error());
        if (name) keep_only(*found, *functions);
        const auto after = repairs ? (*store)->check(bundle::verify_artifact) : found;
        if (!after) return std::unexpected(after.error());
        damages = std::move(*found);
        left = after->size();
    }
    if (context.output == Output::json)
        print(to_json(context, damages, mending, left));
    else
        print(*store ? to_text(context, name ? path_text(*name) : path_text(context.cache_dir), damages, mending, left)
                     : no_folder_text(context) + "\n");
    return left == 0 ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
