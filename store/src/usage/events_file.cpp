#include "usage/events_file.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace warmgraph::store {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_most_items = 512;
constexpr std::array k_event_kinds{EventKind::hit,     EventKind::miss,    EventKind::recorded, EventKind::refused,
                                   EventKind::evicted, EventKind::damaged, EventKind::untrusted};

bool is_event(const Json& item)
{
    const auto has = [&](const char* name, bool (Json::*is)() const noexcept) {
        const auto member = item.find(name);
        return member != item.end() && ((*member).*is)();
    };
    return item.is_object() && has("kind", &Json::is_string) && has("reason", &Json::is_string) &&
           has("count", &Json::is_number_unsigned) && has("bytes", &Json::is_number_unsigned) &&
           (!item.contains("us") || has("us", &Json::is_number_unsigned));
}

} // namespace

Json to_events_json(const Events& events)
{
    Json list = Json::array();
    for (const auto& [what, tally] : events.all()) {
        list.push_back(
            {{"kind", to_string(what.first)}, {"reason", what.second}, {"count", tally.count}, {"bytes", tally.bytes}});
        if (tally.us != 0) list.back()["us"] = tally.us;
    }
    return list;
}

std::optional<Events> parse_events(const Json& json)
{
    if (!json.is_array() || json.size() > k_most_items || !std::ranges::all_of(json, is_event)) return std::nullopt;
    Events events;
    for (const Json& item : json) {
        const auto& name = item["kind"].get_ref<const std::string&>();
        const auto kind = std::ranges::find(k_event_kinds, name, [](EventKind each) { return to_string(each); });
        if (kind == k_event_kinds.end()) continue;
        events.add(*kind, item["reason"].get_ref<const std::string&>(),
                   {item["count"].get<std::uint64_t>(), item["bytes"].get<std::uint64_t>(),
                    item.value("us", std::uint64_t{0})});
    }
    return events;
}

} // namespace warmgraph::store
