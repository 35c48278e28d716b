#include "usage/usage_file.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "usage/events_file.hpp"

namespace warmgraph::store {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_most_phases = 64; ///< there are about ten

bool read_count(const Json& json, const char* name, std::uint64_t& count)
{
    const auto field = json.find(name);
    if (field == json.end() || !field->is_number_unsigned()) return false;
    count = field->get<std::uint64_t>();
    return true;
}

bool read_text(const Json& json, const char* name, std::string& text)
{
    const auto field = json.find(name);
    if (field == json.end() || !field->is_string()) return false;
    text = field->get<std::string>();
    return true;
}

/// A file of an older version has none.
bool read_phases(const Json& json, const char* name, PhaseTimes& phases)
{
    const auto field = json.find(name);
    if (field == json.end()) return true;
    if (!field->is_array() || field->size() > k_most_phases) return false;
    for (const Json& item : *field) {
        if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number()) return false;
        phases.emplace_back(item[0].get<std::string>(), item[1].get<double>());
    }
    return true;
}

/// A file of an older version has none.
bool read_new_count(const Json& json, const char* name, std::uint64_t& count)
{
    return !json.contains(name) || read_count(json, name, count);
}

/// Objects would lose the order.
Json to_json(const PhaseTimes& phases)
{
    Json list = Json::array();
    for (const auto& [name, milliseconds] : phases) list.push_back(Json::array({name, milliseconds}));
    return list;
}

} // namespace

std::string to_usage_json(const FunctionUsage& usage)
{
    const Json json{
        {"hits", usage.hits},          {"misses", usage.misses},           {"recordings", usage.recordings},
        {"refusals", usage.refusals},  {"code_missed", usage.code_missed}, {"code_kept", usage.code_kept},
        {"saved_ms", usage.saved_ms},  {"last_used", usage.last_used},     {"events", to_events_json(usage.events)},
        {"cold", to_json(usage.cold)}, {"warm", to_json(usage.warm)}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<FunctionUsage> parse_usage(ByteView bytes)
{
    const Json json = Json::parse(as_text(bytes), nullptr, false);
    if (!json.is_object()) return std::nullopt;
    FunctionUsage usage;
    const bool complete =
        read_count(json, "hits", usage.hits) && read_count(json, "misses", usage.misses) &&
        read_count(json, "recordings", usage.recordings) && read_count(json, "refusals", usage.refusals) &&
        read_new_count(json, "code_missed", usage.code_missed) && read_new_count(json, "code_kept", usage.code_kept) &&
        read_text(json, "last_used", usage.last_used) && read_phases(json, "cold", usage.cold) &&
        read_phases(json, "warm", usage.warm);
    if (const auto events = json.find("events"); events != json.end()) { // files of older versions have none
        auto read = parse_events(*events);
        if (!read) return std::nullopt;
        usage.events = std::move(*read);
    }
    const auto saved = json.find("saved_ms");
    if (!complete || saved == json.end() || !saved->is_number()) return std::nullopt;
    usage.saved_ms = saved->get<double>();
    return usage.saved_ms >= 0 && std::isfinite(usage.saved_ms) ? std::optional(usage) : std::nullopt;
}

void merge(FunctionUsage& into, const FunctionUsage& more)
{
    into.hits += more.hits;
    into.misses += more.misses;
    into.recordings += more.recordings;
    into.refusals += more.refusals;
    into.code_missed += more.code_missed;
    into.code_kept += more.code_kept;
    // What is less than nothing is taken off: a program that was compiled all the same, a load that took long.
    if (const double sum = into.saved_ms + more.saved_ms; std::isfinite(sum)) into.saved_ms = sum;
    into.events.merge(more.events);
    into.last_used = std::max(into.last_used, more.last_used); // ISO 8601 sorts as text
    if (!more.cold.empty()) into.cold = more.cold;
    if (!more.warm.empty()) into.warm = more.warm;
}

} // namespace warmgraph::store
