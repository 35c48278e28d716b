#include "warmgraph/autotune/best_config.hpp"

#include <algorithm>
#include <array>

#include "best_config_json.hpp"
#include "warmgraph/base/json_members.hpp"

namespace warmgraph::autotune {
namespace {

constexpr std::size_t k_most_timings = 2 * k_most_candidates;
constexpr std::array k_ways{FoundBy::enumeration, FoundBy::coordinate_descent};

template <class Map>
Json map_json(const Map& map)
{
    Json json = Json::object();
    for (const auto& [name, value] : map) {
        if constexpr (std::is_same_v<typename Map::mapped_type, std::string>)
            json[mended(name)] = mended(value);
        else
            json[mended(name)] = value;
    }
    return json;
}

Json timing_json(const Timing& timing)
{
    Json json{{"config", map_json(timing.config)}, {"ms", timing.ms}, {"rounds", timing.rounds}};
    if (!timing.failed.empty()) json["failed"] = mended(timing.failed);
    return json;
}

template <class T>
void read_map(JsonMembers& members, const char* name, std::map<std::string, T>& map, std::size_t most)
{
    const Parsed* const object = members.find(name, &Parsed::is_object);
    if (object == nullptr) return;
    if (object->size() > most) return members.wrong(name);
    for (const auto& [key, value] : object->items()) {
        const bool fits = std::is_same_v<T, std::string> ? value.is_string() : value.is_number_integer();
        // An unsigned number above INT64_MAX would wrap around.
        if (!fits || (value.is_number_unsigned() && value.template get<std::uint64_t>() > INT64_MAX))
            return members.wrong(name);
        map[key] = value.template get<T>();
    }
}

void read_way(JsonMembers& members, FoundBy& by)
{
    std::string text;
    members.text("found_by", text);
    const auto known = std::ranges::find(k_ways, text, [](FoundBy each) { return to_string(each); });
    if (known == k_ways.end()) return members.wrong("found_by");
    by = *known;
}

void read_timings(JsonMembers& members, std::vector<Timing>& timings)
{
    const Parsed* const list = members.find("timings", &Parsed::is_array);
    if (list == nullptr) return;
    if (list->empty() || list->size() > k_most_timings) return members.wrong("timings");
    for (const Parsed& item : *list) {
        JsonMembers fields(item, k_longest_text);
        Timing& timing = timings.emplace_back();
        read_map(fields, "config", timing.config, k_most_parameters);
        fields.milliseconds("ms", timing.ms);
        fields.number("rounds", timing.rounds);
        if (item.is_object() && item.contains("failed")) fields.text("failed", timing.failed);
        if (!fields.first_problem().empty()) return members.wrong("timings");
    }
}

} // namespace

std::string mended(const std::string& text)
{
    // Replaces bytes that are not UTF-8 by U+FFFD, and cuts a long text between two characters.
    const std::string dumped =
        Json(text.substr(0, 2 * k_longest_text)).dump(-1, ' ', false, Json::error_handler_t::replace);
    auto whole = Json::parse(dumped).get<std::string>();
    std::size_t end = std::min(whole.size(), k_longest_text);
    const auto is_inside = [&](std::size_t at) { return (static_cast<unsigned char>(whole[at]) & 0xC0U) == 0x80U; };
    while (end < whole.size() && end > 0 && is_inside(end)) --end;
    whole.resize(end);
    return whole;
}

std::string_view to_string(FoundBy by) noexcept
{
    return by == FoundBy::enumeration ? "enumeration" : "coordinate_descent";
}

const Timing* timing_of(const std::vector<Timing>& timings, const Configuration& config) noexcept
{
    const auto found = std::ranges::find(timings, config, &Timing::config);
    return found != timings.end() ? &*found : nullptr;
}

double gain(const BestConfig& best) noexcept
{
    const Timing* const winner = timing_of(best.timings, best.config);
    if (winner == nullptr || best.timings.empty() || winner->ms <= 0 || best.timings.front().ms <= 0) return 1;
    return best.timings.front().ms / winner->ms;
}

Json json_of(const BestConfig& best)
{
    Json timings = Json::array();
    for (const Timing& timing : best.timings) timings.push_back(timing_json(timing));
    Json json{{"format", k_best_config_format},
              {"kernel", mended(best.kernel)},
              {"config", map_json(best.config)},
              {"found_by", to_string(best.found_by)},
              {"took_ms", best.took_ms},
              {"problem", map_json(best.problem)},
              {"device", map_json(best.device)},
              {"driver", map_json(best.driver)},
              {"written", mended(best.written)},
              {"timings", std::move(timings)},
              {"configs_hash", to_hex(best.configs_hash)},
              {"key", to_hex(best.key)}};
    if (best.programs.empty()) return json;
    Json& programs = json["programs"] = Json::array();
    for (const auto& [key, ms] : best.programs) programs.push_back({{"key", to_hex(key)}, {"ms", ms}});
    return json;
}

/// Reads the programs. The member is optional, because files from before 2026-11-25 lack it.
Result<void> read_programs(const Parsed& json, std::vector<std::pair<Digest, double>>& programs)
{
    if (!json.is_object() || !json.contains("programs")) return {};
    const Parsed& list = json.at("programs");
    if (!list.is_array() || list.size() > k_most_kept_programs)
        return fail(ErrorCode::corrupt, "its programs are not a list of at most {} items", k_most_kept_programs);
    for (const Parsed& item : list) {
        JsonMembers members(item, k_longest_text);
        auto& [key, ms] = programs.emplace_back();
        members.digest("key", key);
        members.milliseconds("ms", ms);
        if (!members.first_problem().empty())
            return fail(ErrorCode::corrupt, "one of its programs is wrong: {}", members.first_problem());
    }
    return {};
}

Result<BestConfig> best_config_of(const Parsed& json)
{
    JsonMembers members(json, k_longest_text);
    std::uint64_t format = 0;
    members.number("format", format);
    if (members.first_problem().empty() && format != k_best_config_format)
        return fail(ErrorCode::stale, "the tuned configuration has format {}, expected {}", format,
                    k_best_config_format);
    BestConfig best;
    members.text("kernel", best.kernel);
    read_map(members, "config", best.config, k_most_parameters);
    read_way(members, best.found_by);
    members.milliseconds("took_ms", best.took_ms);
    read_timings(members, best.timings);
    read_map(members, "problem", best.problem, k_most_facts);
    read_map(members, "device", best.device, k_most_facts);
    read_map(members, "driver", best.driver, k_most_facts);
    members.text("written", best.written);
    members.digest("configs_hash", best.configs_hash);
    members.digest("key", best.key);
    if (!members.first_problem().empty()) return fail(ErrorCode::corrupt, "{}", members.first_problem());
    if (auto ok = read_programs(json, best.programs); !ok) return std::unexpected(ok.error());
    const Timing* const own = timing_of(best.timings, best.config);
    if (own == nullptr || !own->failed.empty())
        return fail(ErrorCode::corrupt, "its winner '{}' was not timed", to_text(best.config));
    return best;
}

std::string sealed(Json json)
{
    json["checksum"] = to_hex(sha256(as_bytes(json.dump())));
    return json.dump(2) + "\n";
}

Result<Parsed> parsed(ByteView bytes, std::uint64_t most)
{
    if (bytes.empty()) return fail(ErrorCode::corrupt, "the file is empty");
    if (bytes.size() > most)
        return fail(ErrorCode::corrupt, "the file has {} bytes, expected at most {}", bytes.size(), most);
    Parsed json = Parsed::parse(as_text(bytes), nullptr, false);
    if (json.is_discarded())
        return fail(ErrorCode::corrupt, "the file is not JSON: it is truncated, or another program wrote it");
    return json;
}

Error not_as_written()
{
    return {ErrorCode::corrupt, "its checksum or its layout does not match its values: the file was damaged or edited"};
}

std::string encode(const BestConfig& best) { return sealed(json_of(best)); }

Result<BestConfig> decode(ByteView bytes)
{
    const auto json = parsed(bytes, k_best_config_cap);
    if (!json) return std::unexpected(json.error());
    auto best = best_config_of(*json);
    if (!best) return best;
    // A value has only one encoding, so any edit changes the bytes.
    if (encode(*best) != as_text(bytes)) return std::unexpected(not_as_written());
    return best;
}

} // namespace warmgraph::autotune
