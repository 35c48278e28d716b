#include "tiers/local/own_names.hpp"

#include <algorithm>

#include "tiers/local/layout.hpp"
#include "tiers/local/load_marks.hpp"
#include "tiers/local/remote_marks.hpp"
#include "tiers/local/temporary.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_hex(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'f'); }

bool skip(std::string_view& text, std::string_view start) noexcept
{
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    return true;
}

bool is_of_function(std::string_view name)
{
    return Layout::entry_digest(name) || name == k_usage_file || name == k_miss_file || name == k_usage_lock ||
           is_record_lock(name) || is_load_mark(name);
}

bool is_in_shard(const Path& top, std::string_view shard, std::string_view name)
{
    if (top == Layout::images()) return Layout::image_digest(shard, name).has_value();
    return Layout::artifact_name(top, shard, name) || (shard.size() == 2 && is_record_lock(name));
}

} // namespace

bool is_own_file(const std::vector<std::string>& names)
{
    const std::string& name = names.back();
    const auto are_keys = [&names] {
        for (std::size_t level = 0; level < k_key_levels; ++level)
            if (!is_key_folder(level, names[level])) return false;
        return true;
    };
    const bool is_reserved =
        std::ranges::find(cachefmt::k_reserved_folders, names.front()) != cachefmt::k_reserved_folders.end();
    switch (names.size()) {
    case 1: return is_temporary(name) || name == k_leases_file || name == k_prune_lock;
    case 2:
        if (names[0] == Layout::quarantine()) return is_quarantined(name) || is_temporary(name);
        if (names[0] == k_remotes)
            return is_remote_mark(name) || name == k_usage_file || name == k_usage_lock || is_temporary(name);
        return is_reserved && names[0] != Layout::images() &&
               (name == k_usage_file || name == k_miss_file || name == k_usage_lock || is_temporary(name));
    case 3: return is_reserved && (is_in_shard(names[0], names[1], name) || is_temporary(name));
    case k_key_levels + 1: return are_keys() && (is_of_function(name) || is_temporary(name));
    default: return false;
    }
}

bool is_key_folder(std::size_t level, std::string_view name)
{
    FunctionKey key{"m_static_clgraphcache_000000000000", "world1global_rank0", "f"};
    (level == 0 ? key.model_info : level == 1 ? key.rank : key.function) = name;
    return level < k_key_levels && check_key(key).has_value();
}

bool is_record_lock(std::string_view name) noexcept
{
    return skip(name, k_lock_prefix) && name.size() == k_lock_digits && std::ranges::all_of(name, is_hex);
}

bool is_uuid(std::string_view text) noexcept
{
    if (text.size() != k_uuid_bytes) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? text[i] != '-' : !is_hex(text[i])) return false;
    }
    return true;
}

bool is_reason(std::string_view name) noexcept { return name.ends_with(k_reason_suffix); }

bool is_quarantined(std::string_view name)
{
    if (is_reason(name)) name.remove_suffix(k_reason_suffix.size());
    if (name.size() <= k_uuid_bytes || !is_uuid(name.substr(0, k_uuid_bytes)) || name[k_uuid_bytes] != '-')
        return false;
    name.remove_prefix(k_uuid_bytes + 1);
    return Layout::entry_digest(name) || Layout::image_digest(name.substr(0, 2), name) || artifact_from_file_name(name);
}

} // namespace warmgraph::store
