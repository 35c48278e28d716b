#include "usage/usage_file.hpp"

#include <algorithm>
#include <cmath>

#include "usage/events_file.hpp"
#include "warmgraph/base/json_members.hpp"

namespace warmgraph::store {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_most_phases = 64; ///< there are about ten

/// Reads phases. Files of older versions lack them.
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

/// An array, because an object would lose the order.
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
    JsonMembers members(json, bytes.size());
    members.number("hits", usage.hits);
    members.number("misses", usage.misses);
    members.number("recordings", usage.recordings);
    members.number("refusals", usage.refusals);
    members.text("last_used", usage.last_used);
    members.milliseconds("saved_ms", usage.saved_ms);
    // Files of older versions lack these members.
    if (json.contains("code_missed")) members.number("code_missed", usage.code_missed);
    if (json.contains("code_kept")) members.number("code_kept", usage.code_kept);
    if (const auto events = json.find("events"); events != json.end()) {
        auto read = parse_events(*events);
        if (!read) return std::nullopt;
        usage.events = std::move(*read);
    }
    const bool complete = members.first_problem().empty() && read_phases(json, "cold", usage.cold) &&
                          read_phases(json, "warm", usage.warm);
    return complete ? std::optional(usage) : std::nullopt;
}

void merge(FunctionUsage& into, const FunctionUsage& more)
{
    into.hits += more.hits;
    into.misses += more.misses;
    into.recordings += more.recordings;
    into.refusals += more.refusals;
    into.code_missed += more.code_missed;
    into.code_kept += more.code_kept;
    // A negative saving is subtracted, e.g. when a cached program had to be compiled anyway or a load took long.
    if (const double sum = into.saved_ms + more.saved_ms; std::isfinite(sum)) into.saved_ms = sum;
    into.events.merge(more.events);
    into.last_used = std::max(into.last_used, more.last_used); // ISO 8601 sorts as text
    if (!more.cold.empty()) into.cold = more.cold;
    if (!more.warm.empty()) into.warm = more.warm;
}

} // namespace warmgraph::store
