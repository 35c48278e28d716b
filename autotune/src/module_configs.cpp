#include "warmgraph/autotune/module_configs.hpp"

#include "best_config_json.hpp"
#include "warmgraph/base/json_members.hpp"

namespace warmgraph::autotune {
namespace {

Result<void> read_head(const Parsed& json, ModuleConfigs& module)
{
    JsonMembers members(json, k_longest_text);
    std::uint64_t format = 0;
    members.number("format", format);
    if (members.first_problem().empty() && format != k_module_format)
        return fail(ErrorCode::stale, "the module's configurations have format {}, expected {}", format,
                    k_module_format);
    members.text("module", module.module);
    members.digest("key", module.key);
    const Parsed* const configs = members.find("configs", &Parsed::is_array);
    if (configs != nullptr && configs->size() > k_most_module_configs) members.wrong("configs");
    if (!members.first_problem().empty()) return fail(ErrorCode::corrupt, "{}", members.first_problem());
    return {};
}

} // namespace

std::map<Digest, BestConfig> merged(std::map<Digest, BestConfig> loaded, const std::map<Digest, BestConfig>& newer)
{
    for (const auto& [key, best] : newer) loaded.insert_or_assign(key, best);
    return loaded.size() <= k_most_module_configs ? std::move(loaded) : newer;
}

std::string encode(const ModuleConfigs& module)
{
    Json configs = Json::array();
    for (const auto& [key, best] : module.configs) configs.push_back(json_of(best));
    return sealed({{"format", k_module_format},
                   {"module", mended(module.module)},
                   {"configs", std::move(configs)},
                   {"key", to_hex(module.key)}});
}

Result<ModuleConfigs> decode_module(ByteView bytes)
{
    const auto json = parsed(bytes, k_module_cap);
    if (!json) return std::unexpected(json.error());
    ModuleConfigs module;
    if (auto ok = read_head(*json, module); !ok) return std::unexpected(ok.error());
    for (const Parsed& item : (*json)["configs"]) {
        auto best = best_config_of(item);
        if (!best) return within(fmt::format("configuration {}", module.configs.size()), best.error());
        const Digest key = best->key;
        module.configs.insert_or_assign(key, std::move(*best));
    }
    if (encode(module) != as_text(bytes)) return std::unexpected(not_as_written());
    return module;
}

} // namespace warmgraph::autotune
