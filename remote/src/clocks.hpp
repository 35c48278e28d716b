// The clocks of stores, for `warmgraph doctor --remote`: S3 refuses a request whose time is more than 15 minutes off.
#pragma once

#include <chrono>
#include <optional>

#include "warmgraph/base/error.hpp"
#include "warmgraph/remote/settings.hpp"

namespace warmgraph::remote {

using StoreTime = std::optional<std::chrono::sys_seconds>;

/// The time in the answer to a request for the root. nullopt: the answer has no Date.
[[nodiscard]] Result<StoreTime> http_time(const Settings& settings);
/// The answer to the command TIME.
[[nodiscard]] Result<StoreTime> redis_time(const Settings& settings);

/// Parses "Tue, 01 Dec 2026 07:41:44 GMT" (RFC 9110, section 5.6.7). nullopt: another form.
[[nodiscard]] StoreTime time_of_date(const std::string& date);

} // namespace warmgraph::remote
