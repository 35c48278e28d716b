#include "selection.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "line/suggestion.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::tool {

namespace {

std::vector<std::string_view> split(std::string_view text)
{
    std::vector<std::string_view> parts;
    for (std::size_t start = 0;;) {
        const std::size_t end = text.find('/', start);
        parts.push_back(text.substr(start, end - start));
        if (end == std::string_view::npos) return parts;
        start = end + 1;
    }
}

std::string list_of(const std::vector<cachefmt::FunctionKey>& functions)
{
    constexpr std::size_t limit = 20;
    std::string list;
    for (std::size_t i = 0; i < std::min(functions.size(), limit); ++i) list += "\n  " + full_name(functions[i]);
    if (functions.size() > limit) list += fmt::format("\n  and {} more", functions.size() - limit);
    return list;
}

bool fits(const cachefmt::FunctionKey& key, const std::vector<std::string_view>& parts)
{
    return is_model(key.model_info, parts.front()) && (parts.size() < 2 || key.function == parts.back()) &&
           (parts.size() < 3 || key.rank == parts[1]);
}

bool is_name(const std::vector<std::string_view>& parts)
{
    return parts.size() <= 3 && std::ranges::none_of(parts, &std::string_view::empty);
}

std::unexpected<Error> not_there(const std::vector<cachefmt::FunctionKey>& functions, std::string_view name,
                                 std::string_view what)
{
    if (functions.empty()) return fail(ErrorCode::not_found, "no {} '{}' in the cache, which is empty", what, name);
    std::vector<std::string> candidates = names_of(functions);
    for (const cachefmt::FunctionKey& key : functions)
        candidates.push_back(fmt::format("{}/{}/{}", cachefmt::model_of(key.model_info), key.rank, key.function));
    const std::string meant = did_you_mean(name, candidates);
    return fail(ErrorCode::not_found, "no {} '{}' in the cache{}{}", what, name,
                meant.empty() ? "; there are:" : meant + " there are:", list_of(functions));
}

} // namespace

bool is_model(std::string_view model_info, std::string_view name)
{
    return name == model_info || name == cachefmt::model_of(model_info);
}

std::string full_name(const cachefmt::FunctionKey& key)
{
    return fmt::format("{}/{}/{}", key.model_info, key.rank, key.function);
}

Result<cachefmt::FunctionKey> select(const std::vector<cachefmt::FunctionKey>& functions, std::string_view name)
{
    const std::vector<std::string_view> parts = split(name);
    if (parts.size() < 2 || !is_name(parts))
        return fail(ErrorCode::invalid_argument,
                    "'{}' is not the name of a function: give model/function or model/rank/function", name);
    std::vector<cachefmt::FunctionKey> found;
    for (const cachefmt::FunctionKey& key : functions)
        if (fits(key, parts)) found.push_back(key);
    if (found.size() == 1) return found.front();
    if (found.empty()) return not_there(functions, name, "function");
    return fail(ErrorCode::invalid_argument, "'{}' names {} functions: give one in full{}", name, found.size(),
                list_of(found));
}

Result<cachefmt::FunctionKey> select(const Context& context, const store::LocalStore* store, std::string_view name)
{
    const auto functions = store != nullptr ? store->functions() : std::vector<cachefmt::FunctionKey>{};
    if (!functions) return std::unexpected(functions.error());
    auto key = select(*functions, name);
    if (!key && key.error().code == ErrorCode::not_found && store == nullptr)
        return fail(ErrorCode::not_found, "no function '{}': {}", name, no_folder_text(context));
    return key;
}

std::vector<std::string> names_of(const std::vector<cachefmt::FunctionKey>& functions)
{
    std::set<std::string> names;
    for (const cachefmt::FunctionKey& key : functions) {
        const std::string model{cachefmt::model_of(key.model_info)};
        names.insert({model, model + "/" + key.function});
    }
    return {names.begin(), names.end()};
}

Result<std::vector<cachefmt::FunctionKey>> choose(const std::vector<cachefmt::FunctionKey>& functions,
                                                  const std::optional<std::string>& name)
{
    if (!name) return functions;
    const std::vector<std::string_view> parts = split(*name);
    if (!is_name(parts))
        return fail(ErrorCode::invalid_argument,
                    "'{}' is not a name: give a model, model/function or model/rank/function", *name);
    std::vector<cachefmt::FunctionKey> found;
    std::ranges::copy_if(functions, std::back_inserter(found), [&](const auto& key) { return fits(key, parts); });
    if (found.empty()) return not_there(functions, *name, parts.size() == 1 ? "model" : "function");
    return found;
}

Result<std::vector<cachefmt::FunctionKey>> choose(const Context& context, const store::LocalStore* store,
                                                  const std::optional<std::string>& name)
{
    if (store == nullptr && name) return fail(ErrorCode::not_found, "no '{}': {}", *name, no_folder_text(context));
    const auto functions = store != nullptr ? store->functions() : std::vector<cachefmt::FunctionKey>{};
    if (!functions) return std::unexpected(functions.error());
    return choose(*functions, name);
}

Result<store::ClearRequest> request_of(const std::optional<std::string>& model,
                                       const std::optional<std::string>& function)
{
    store::ClearRequest request{.model = model};
    if (!function) return request;
    const std::vector<std::string_view> parts = split(*function);
    if (parts.size() > 3 || std::ranges::any_of(parts, &std::string_view::empty))
        return fail(ErrorCode::invalid_argument,
                    "--func '{}' is not the name of a function: give function, model/function or model/rank/function",
                    *function);
    if (parts.size() > 1 && model)
        return fail(ErrorCode::invalid_argument, "--func '{}' names a model, and so does --model '{}': leave one out",
                    *function, *model);
    if (parts.size() > 1) request.model = parts.front();
    if (parts.size() > 2) request.rank = parts[1];
    request.function = parts.back();
    return request;
}

Error fits_nothing(const std::vector<cachefmt::FunctionKey>& functions, const store::ClearRequest& request)
{
    std::string wanted;
    if (request.function) wanted += fmt::format(" function '{}'", *request.function);
    if (request.rank) wanted += fmt::format(" of rank '{}'", *request.rank);
    if (request.model) wanted += fmt::format("{} model '{}'", request.function ? " of" : "", *request.model);
    return {ErrorCode::not_found,
            fmt::format("nothing was removed: no{} in the cache{}", wanted,
                        functions.empty() ? ", which is empty" : "; there are:" + list_of(functions))};
}

Result<cachefmt::EntryKey> key_of_path(const std::filesystem::path& path)
{
    const auto full = std::filesystem::absolute(path).lexically_normal();
    const auto folder = full.parent_path();
    const std::optional<Digest> digest = digest_from_hex(full.stem().string());
    if (!digest)
        return fail(
            ErrorCode::invalid_argument,
            "'{}' is not the name of an entry's file: expected <model_info>/<rank>/<function>/<64 hex digits>.wg",
            path.string());
    return cachefmt::EntryKey{{folder.parent_path().parent_path().filename().string(),
                               folder.parent_path().filename().string(), folder.filename().string()},
                              *digest};
}

} // namespace warmgraph::tool
