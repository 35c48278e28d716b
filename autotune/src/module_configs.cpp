#include "warmgraph/autotune/module_configs.hpp"

#include "best_config_json.hpp"

namespace warmgraph::autotune {
namespace {

Result<void> read_head(const Parsed& json, ModuleConfigs& module)
{
    const auto member = [&json](const char* name, bool (Parsed::*is)() const noexcept) -> const Parsed* {
        const auto found = json.is_object() ? json.find(name) : json.end();
        return found != json.end() && ((*found).*is)() ? &*found : nullptr;
    };
    const Parsed* const format = member("format", &Parsed::is_number_unsigned);
    if (format == nullptr) return fail(ErrorCode::corrupt, "'format' is missing or of another kind");
    if (format->get<std::uint64_t>() != k_module_format)
        return fail(ErrorCode::stale, "the module's configurations have format {}, expected {}",
                    format->get<std::uint64_t>(), k_module_format);
    const Parsed* const name = member("module", &Parsed::is_string);
    const Parsed* const key = member("key", &Parsed::is_string);
    const auto digest = key != nullptr ? digest_from_our_hex(key->get<std::string>()) : std::nullopt;
    const Parsed* const configs = member("configs", &Parsed::is_array);
    if (name == nullptr || !digest || configs == nullptr || configs->size() > k_most_module_configs)
        return fail(ErrorCode::corrupt, "'module', 'key' or 'configs' is missing, of another kind or too much");
    module.module = name->get<std::string>();
    module.key = *digest;
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
