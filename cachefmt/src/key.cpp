#include "warmgraph/cachefmt/key.hpp"

#include <algorithm>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::size_t k_name_bytes = 128;
/// bytes of a model's name and the suffix of model_info(): "_dynamic_cudagraphcache_" and 12 digits
constexpr std::size_t k_component_bytes = 200;
constexpr std::size_t k_hash_digits = 12;

bool is_allowed(char c) noexcept
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

constexpr std::size_t k_shown_of_name = 64; // bytes of a bad name in a message

Result<void> check_component(std::string_view what, std::string_view name, std::size_t limit)
{
    constexpr std::string_view k_cure = "use letters, digits, '.', '_' and '-'";
    if (name.empty()) return fail(ErrorCode::invalid_argument, "{} is empty: {}", what, k_cure);
    if (const auto bad = std::ranges::find_if_not(name, is_allowed); bad != name.end()) {
        return fail(ErrorCode::invalid_argument, "{} '{}' has '{}' at byte {}: {}", what,
                    printable(name, k_shown_of_name), printable(std::string_view(&*bad, 1)), bad - name.begin(),
                    k_cure);
    }
    if (name.front() == '.' || name.front() == '-') {
        return fail(ErrorCode::invalid_argument, "{} '{}' starts with '{}': start it with a letter, a digit or '_'",
                    what, printable(name, k_shown_of_name), name.front());
    }
    if (name.size() > limit) {
        return fail(ErrorCode::invalid_argument, "{} '{}' has {} bytes, at most {} are allowed: shorten it", what,
                    printable(name, k_shown_of_name), name.size(), limit);
    }
    return {};
}

bool ends_with_and_drops(std::string_view& text, std::string_view end) noexcept
{
    if (!text.ends_with(end)) return false;
    text.remove_suffix(end.size());
    return true;
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool skip(std::string_view& text, std::string_view start) noexcept
{
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    return true;
}

/// Skips a number in fmt's form: no sign, no leading zero.
bool skip_number(std::string_view& text) noexcept
{
    const auto digits = static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
    if (digits == 0 || (digits > 1 && text.front() == '0')) return false;
    text.remove_prefix(digits);
    return true;
}

} // namespace

Result<void> check_name(std::string_view what, std::string_view name)
{
    return check_component(what, name, k_name_bytes);
}

Result<void> check_key(const FunctionKey& function)
{
    if (auto ok = check_component("model info", function.model_info, k_component_bytes); !ok) return ok;
    if (std::ranges::find(k_reserved_folders, function.model_info) != k_reserved_folders.end()) {
        return fail(ErrorCode::invalid_argument,
                    "model info '{}' is the name of one of the cache's own folders: use another", function.model_info);
    }
    if (!is_model_info(function.model_info)) {
        return fail(ErrorCode::invalid_argument,
                    "'{}' is not a model info, expected <model>_<static|dynamic>_<clgraphcache|cudagraphcache>_<12 hex "
                    "digits>: make it with model_info()",
                    printable(function.model_info, k_shown_of_name));
    }
    if (auto ok = check_component("rank", function.rank, k_name_bytes); !ok) return ok;
    if (!is_rank_folder(function.rank)) {
        return fail(ErrorCode::invalid_argument,
                    "'{}' is not a rank, expected a name like world8global_rank3: make it with folder_name()",
                    printable(function.rank, k_shown_of_name));
    }
    return check_component("function name", function.function, k_name_bytes);
}

std::string model_info(std::string_view model, std::string_view backend, std::string_view shape_mode,
                       const std::map<std::string, std::string>& config)
{
    Sha256 hash;
    hash.update_field(model);
    for (const auto& [name, value] : config) hash.update_field(name).update_field(value);
    return fmt::format("{}_{}_{}_{}", model, shape_mode, backend == "cuda" ? "cudagraphcache" : "clgraphcache",
                       to_hex(hash.finish()).substr(0, k_hash_digits));
}

std::array<std::string, 2> model_infos(std::string_view model, std::string_view shape_mode,
                                       const std::map<std::string, std::string>& config)
{
    return {model_info(model, "opencl", shape_mode, config), model_info(model, "cuda", shape_mode, config)};
}

bool is_model_info(std::string_view name) noexcept { return model_of(name).size() != name.size(); }

std::string_view model_of(std::string_view model_info) noexcept
{
    std::string_view text = model_info;
    const auto is_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
    if (text.size() <= k_hash_digits || !std::ranges::all_of(text.substr(text.size() - k_hash_digits), is_hex))
        return model_info;
    text.remove_suffix(k_hash_digits);
    if (!ends_with_and_drops(text, "_clgraphcache_") && !ends_with_and_drops(text, "_cudagraphcache_"))
        return model_info;
    if (!ends_with_and_drops(text, "_static") && !ends_with_and_drops(text, "_dynamic")) return model_info;
    return text.empty() ? model_info : text;
}

std::string folder_name(const Rank& rank)
{
    std::string name = fmt::format("world{}global_rank{}", rank.world_size, rank.global_rank);
    if (rank.tp_rank) name += fmt::format("_tp_rank{}", *rank.tp_rank);
    if (rank.pp_rank) name += fmt::format("_pp_rank{}", *rank.pp_rank);
    return name;
}

bool is_rank_folder(std::string_view name) noexcept
{
    if (!skip(name, "world") || !skip_number(name) || !skip(name, "global_rank") || !skip_number(name)) return false;
    if (skip(name, "_tp_rank") && !skip_number(name)) return false;
    if (skip(name, "_pp_rank") && !skip_number(name)) return false;
    return name.empty();
}

} // namespace warmgraph::cachefmt
