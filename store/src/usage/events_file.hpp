// Events as the member "events" of usage.json.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "warmgraph/store/events.hpp"

namespace warmgraph::store {

/// Returns [{"kind": "miss", "reason": "driver.version", "count": 3, "bytes": 0}, ...].
[[nodiscard]] nlohmann::json to_events_json(const Events& events);
/// Returns nullopt when `json` is not such a list. Kinds that this version does not know are left out.
[[nodiscard]] std::optional<Events> parse_events(const nlohmann::json& json);

} // namespace warmgraph::store
